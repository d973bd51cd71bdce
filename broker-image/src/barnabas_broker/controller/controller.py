"""The controller as handlers see it: turns requests into events, and lets the core decide.

Each public method takes a request apart, hands an event to the core or asks the pure modules beside
it (`configs`, `adoption`), and answers for each part of the request. It decides nothing itself.

Every broker has one. With a store of its own it is the controller for good; at a shared store it
runs for controller: it is the active controller (`active`), or a member (`member`) while another
broker is. Calls block for as long as the store takes, so one thread
makes all of them (`server.control.controller_thread`).
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from random import Random
from uuid import UUID

from barnabas_broker.cluster.image import BrokerRegistration, MetadataImage, PartitionState
from barnabas_broker.controller import events
from barnabas_broker.controller.active_controller import ActiveController
from barnabas_broker.controller.adoption import Adoption, plan_adoptions
from barnabas_broker.controller.careful_election import EndsAnswer
from barnabas_broker.controller.client_quota_manager import ClientQuotaManager
from barnabas_broker.controller.config_manager import ConfigManager, Validate
from barnabas_broker.controller.controller_claim import contest
from barnabas_broker.controller.identity import new_id
from barnabas_broker.controller.internal import automatic_topic
from barnabas_broker.controller.isr_changes import IsrAnswer, IsrRequest, partitions_of
from barnabas_broker.controller.isr_writes import notify_controller, write_in_sync
from barnabas_broker.controller.metadata_listener import MetadataListener
from barnabas_broker.controller.metadata_store import Listener, MetadataStore
from barnabas_broker.controller.offline_replicas import Answered
from barnabas_broker.controller.own_registration import OwnRegistration
from barnabas_broker.controller.requests import (
    Admit,
    ConfigRequest,
    CreatedTopic,
    Growth,
    Outcome,
    admit_all,
    not_admitted,
)
from barnabas_broker.controller.startup import (
    identify,
    load_image,
    make_parents,
    take_over,
    warn_of_acls,
)
from barnabas_broker.controller.steps import Steps
from barnabas_broker.controller.target_state import TargetState
from barnabas_broker.controller.topic_znodes import (
    create_topic,
    grow_topic,
)
from barnabas_broker.controller.topics import (
    NewTopic,
)
from barnabas_broker.controller.user_credential_manager import UserCredentialManager
from barnabas_broker.controller.zookeeper_changes import Follower, ZnodeChanges, events_of
from barnabas_broker.security.principals import Principal
from barnabas_broker.zk.store import (
    CoordinationError,
    CoordinationStore,
    Create,
    Operation,
    Watch,
)
from barnabas_broker.zk.znodes import (
    BrokerZnode,
    ConfigZnode,
    ControllerZnode,
    DeleteTopicZnode,
    IsrChangeZnode,
    LogDirEventZnode,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_zookeeper.errors import ZooKeeperError

_log = logging.getLogger(__name__)

COORDINATION_DATA = Principal("Coordination", "znodes")
"""The principal in the audit log for what a tool did by writing znodes."""


class Controller:
    """Owns the metadata of the cluster: `image` is what is true now, `settings` what applies.

    Life: `start`, then `register` once the listeners are bound, then `adopt` once the logs are
    open; from then on requests. Listeners are called with the old and the new image after each
    change, in the order in which they were added.
    """

    def __init__(
        self,
        store: CoordinationStore,
        *,
        broker_id: int,
        settings: BrokerSettings,
        random: Random,
    ) -> None:
        """`settings` are those given at start; changes at run time are in the store."""
        self.deleting: frozenset[str] = frozenset()
        self._store = store
        self._metadata = MetadataStore(store)
        self._settings = ConfigManager(self._metadata, broker_id=broker_id, settings=settings)
        self._broker_id = broker_id
        self._random = random
        self._own = OwnRegistration(store, broker_id)
        self._follower = Follower(self._metadata, self._settings)
        self._shared = False
        #: what this process registered with first; 0 where what is on record is its own doing
        self._first_epoch: int | None = None
        self._log_dir_event_pending = False
        self.stored = MetadataImage(cluster_id="")
        self.member = MetadataListener(self._metadata, broker_id=broker_id)
        self.active = ActiveController(
            self._metadata, self._settings, broker_id=broker_id, random=random
        )
        self.user_credentials = UserCredentialManager(self._metadata)
        self.client_quotas = ClientQuotaManager(self._metadata)

    @property
    def image(self) -> MetadataImage:
        """The cluster as it is now."""
        return self._metadata.image

    @property
    def settings(self) -> BrokerSettings:
        """This broker's settings as they are now, changes at run time included."""
        return self._settings.settings

    # --- life

    def add_listener(self, listener: Listener) -> None:
        """Have `listener(old, new)` called after each change of the image."""
        self._metadata.add_listener(listener)

    def add_validator(self, validate: Validate) -> None:
        """Have `validate` asked before this broker's settings are changed; it may block."""
        self._settings.validators.append(validate)

    def remove_listener(self, listener: Listener) -> None:
        """Call it for no more changes."""
        self._metadata.remove_listener(listener)

    def start(self, *, cluster_id: str | None, now_ms: int) -> MetadataImage:
        """Become the controller of a store that is this broker's own; listeners are not called.

        `cluster_id` is the one in meta.properties, None for new directories. Raises
        CoordinationError or MalformedZnodeError, one line each, where the stored data does not fit
        or cannot be read.
        """
        taken = take_over(
            self._store,
            broker_id=self._broker_id,
            cluster_id=cluster_id,
            deletion_enabled=self._settings.deletion_enabled,
            random=self._random,
            now_ms=now_ms,
        )
        self._first_epoch = 0
        self.active.context.alone = True
        self.stored = taken.image
        self._metadata.load(taken.image)
        self._metadata.claim = taken.claim
        self.deleting = taken.deleting
        self._settings.load(self.image.broker_configs)
        return self.image

    def join(self, *, cluster_id: str | None, now_ms: int) -> MetadataImage:
        """Find one's cluster in a store that others use, too; afterwards `register`, `contest`.

        `cluster_id` as for `start`, and raises as that does. Which partitions this broker holds is
        not known before a controller says it: `stored` is on record until then, `deleting` marked.
        """
        self._shared = True
        make_parents(self._store, now_ms=now_ms)
        identity = identify(self._store, cluster_id, self._random, found_new=False, now_ms=now_ms)
        self.stored = load_image(self._store, identity)
        if self._settings.deletion_enabled:
            self.deleting = frozenset(self._store.children(DeleteTopicZnode.ROOT))
        if not self.settings[keys.AUTHORIZER_CLASS_NAME]:
            warn_of_acls(self._store)
        self._metadata.load(self.stored.without_topics)
        self._settings.load(self.image.broker_configs)
        return self.image

    def register(self, broker: BrokerRegistration, *, now_ms: int) -> None:
        """Register this broker and its endpoints.

        The registration of an earlier session is waited for. Raises CoordinationError while another
        broker with this id is alive.
        """
        registered = self._own.make(broker, now_ms=now_ms)
        self.member.registered(registered.epoch)
        if self._first_epoch is None:
            self._first_epoch = registered.epoch
        brokers = {**self.image.brokers, broker.id: registered}
        self._metadata.publish(self.image.with_changes(brokers=brokers))

    def trust(self, *, now_ms: int) -> None:
        """Update the registration: no log of this broker may be truncated any more.

        Raises CoordinationError, ZooKeeperError; the update then follows when the connection is
        back.
        """
        self._own.trust(now_ms=now_ms)

    @property
    def stale(self) -> bool:
        """Whether a write failed so that everything must be read again."""
        return self._metadata.stale

    @property
    def shared(self) -> bool:
        """Whether other brokers may be members of the same cluster."""
        return self._shared

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._metadata.claim is not None

    @property
    def view(self) -> TargetState | None:
        """The target state of all brokers, None where another broker sends it."""
        return self.active.view if self._shared and self.is_active else None

    @property
    def epoch(self) -> int:
        """The epoch of this controller; 0 before there was one."""
        return self._metadata.controller_epoch

    def check_active(self) -> None:
        """Raise KafkaError NOT_CONTROLLER where another broker is the controller."""
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller.")

    def accept_controller(self, controller_epoch: int, broker_epoch: int) -> ErrorCode | None:
        """A controller of that epoch asks something of the broker registered so.

        Returns why it is refused, None if it is to be obeyed: it has followed all before it.
        """
        refusal = self.member.epochs.refusal(controller_epoch, broker_epoch)
        obsolete = self.is_active and controller_epoch <= self.epoch
        if refusal is None and (obsolete or not self._shared):
            refusal = ErrorCode.STALE_CONTROLLER_EPOCH
        if refusal is None:
            self.member.observe_controller_epoch(controller_epoch)
            self.resign()
        return refusal

    def alter_partitions(self, request: IsrRequest, *, now_ms: int) -> list[IsrAnswer]:
        """Change ISRs, as leaders request, and complete the reassignments that this finishes.

        Raises KafkaError NOT_CONTROLLER, STALE_BROKER_EPOCH.
        """
        self.check_active()
        answers: list[IsrAnswer] = self.active.process(
            events.AlterPartitionReceived(request), now_ms=now_ms
        )
        changed = events.PartitionReassignmentIsrChange(partitions_of(request, self.image))
        try:
            self.active.process(changed, now_ms=now_ms)
        except KafkaError as error:  # Everything is read again, and then it is tried again.
            _log.warning("Reassignment not completed yet: %s", error)
        return answers

    def storage_answered(self, broker: int, answered: Answered, *, now_ms: int) -> None:
        """Process which of its replicas a broker can use; raises KafkaError as `process`."""
        if self._shared and self.is_active:
            answer = events.LeaderAndIsrResponseReceived(broker, answered)
            self.active.process(answer, now_ms=now_ms)

    def ends_answered(
        self,
        broker: int,
        broker_epoch: int,
        answered: Mapping[TopicPartition, EndsAnswer],
        *,
        now_ms: int,
    ) -> None:
        """Process the log ends that a broker reported; raises KafkaError as `process`."""
        if self._shared and self.is_active:
            answer = events.LogEndsReceived(broker, broker_epoch, answered)
            self.active.process(answer, now_ms=now_ms)

    def write_in_sync(
        self, tp: TopicPartition, wanted: PartitionState, *, now_ms: int
    ) -> PartitionState:
        """Write the ISR of a partition that is led here; returns the new state.

        Raises KafkaError INVALID_UPDATE_VERSION, and CoordinationError.
        """
        return write_in_sync(self._store, tp, wanted, now_ms=now_ms)

    def notify_controller(self, partitions: Collection[TopicPartition], *, now_ms: int) -> None:
        """Notify the controller, which may be this one, of what was written so."""
        notify_controller(self._store, partitions, now_ms=now_ms)

    def contest(self, *, now_ms: int) -> bool:
        """Run for controller; the winner is the active controller, the others are members.

        Returns whether this broker has been elected, and has everything yet to watch.

        Raises CoordinationError, ZooKeeperError or MalformedZnodeError where that fails half way:
        it is then tried again with the next `catch_up`.
        """
        self._store.watch(ControllerZnode.PATH, Watch.DATA)
        claim = contest(self._store, broker_id=self._broker_id, now_ms=now_ms)
        begun = claim not in (None, self._metadata.claim)
        if claim is None:
            self.resign()
        elif claim != self._metadata.claim:
            _log.info("Elected as the controller: epoch=%d", claim.epoch)
            self._metadata.claim = claim
            self.member.observe_controller_epoch(claim.epoch)
            try:
                elected = events.ControllerChange(self._first_epoch or 0)
                self.active.process(elected, now_ms=now_ms)
            except BaseException:
                self._metadata.claim = None
                raise
        return begun

    def resign(self) -> None:
        """Another broker is the controller; the image stays until it says otherwise."""
        if self.is_active:
            _log.warning("Resigned as the controller: epoch=%d", self._metadata.controller_epoch)
            self._metadata.claim = None
            self.active.end()
            self._metadata.publish(self.image.with_changes())

    def catch_up(self, paths: Collection[str] | None, *, now_ms: int) -> None:
        """Act on what others wrote to the znodes of these paths, or to any, and watch for more.

        Raises CoordinationError, ZooKeeperError or KafkaError where the store failed or changed
        on the way.
        """
        changes = ZnodeChanges(paths)
        failures = self._metadata.failures
        if paths is None:
            make_parents(self._store, now_ms=now_ms)
        self._keep_registration(changes, now_ms)
        if self._log_dir_event_pending:
            self.propagate_log_dir_event(now_ms=now_ms)
        begun = changes.of(ControllerZnode.PATH) and self.contest(now_ms=now_ms)
        steps = Steps()
        steps.take("settings", lambda: self._follower.read_settings(changes))
        if self.is_active:
            self._act_on(steps, ZnodeChanges(None) if begun else changes, now_ms)
        steps.raise_first()
        if paths is None:
            # A write that failed meanwhile, and whose error answered a request, counts on.
            self._metadata.mended(failures)

    @property
    def unsettled(self) -> bool:
        """Whether elections were refused that are retried (`settle_refused`)."""
        return self.is_active and bool(self.active.context.unsettled)

    def propagate_log_dir_event(self, *, now_ms: int) -> None:
        """Announce to the controller that a log directory of this broker has changed.

        Without a connection that is done when it is back.
        """
        if not self._shared:
            return
        self._log_dir_event_pending = True
        event = Create(
            LogDirEventZnode.PREFIX, LogDirEventZnode.encode(self._broker_id), sequential=True
        )
        try:
            self._store.commit([event], now_ms=now_ms)
        except (CoordinationError, ZooKeeperError) as error:
            _log.warning("Log directory failure not reported to the controller yet: %s", error)
            return
        self._log_dir_event_pending = False

    def _act_on(self, steps: Steps, changes: ZnodeChanges, now_ms: int) -> None:
        """Run each step of a controller, also if another one has failed."""

        def take(what: str, event: events.Event) -> set[TopicPartition]:
            answers: list[set[TopicPartition]] = []
            steps.take(what, lambda: answers.append(self.active.process(event, now_ms=now_ms)))
            return answers[0] if answers else set()

        if self._shared:
            everything = changes.paths is None
            written: set[TopicPartition] = set()
            if changes.of(IsrChangeZnode.ROOT):
                isrs = events.IsrChangeNotification(anything=everything)
                written = take("in-sync replicas", isrs)
            for what, event in events_of(changes):
                take(what, event)
            some = None if everything else written
            take("moves under way", events.PartitionReassignmentIsrChange(some))
        else:
            take("deletions", events.TopicDeletionRetried())
        steps.take("topics", lambda: self._read_topics(changes, now_ms))

    def _read_topics(self, changes: ZnodeChanges, now_ms: int) -> None:
        wished, pointless = self._follower.marked_topics(changes)
        pointless = [name for name in pointless if name not in self.active.context.deleting]
        if not self._settings.deletion_enabled:
            wished, pointless = [], wished + pointless
        self._follower.remove_marks(pointless, now_ms=now_ms)
        self._follower.ignored = frozenset(self.active.context.deleting)
        changed = self._follower.changed_topics(changes)
        if changed:
            self.active.process(events.TopicChange(changed), now_ms=now_ms)
        wished = [name for name in wished if name not in self.active.context.deleting]
        if wished:
            self.delete_topics(wished, principal=COORDINATION_DATA, now_ms=now_ms)

    def _keep_registration(self, changes: ZnodeChanges, now_ms: int) -> None:
        broker = self._own.wanted
        if broker is None or not changes.of(BrokerZnode(self._broker_id).path):
            return
        if self._own.is_lost():
            _log.warning("Registering broker again: broker=%d", self._broker_id)
            self.register(broker, now_ms=now_ms)
        else:
            self._own.correct(now_ms=now_ms)

    def adopt(
        self,
        found: Mapping[TopicPartition, UUID | None],
        *,
        epochs: Mapping[TopicPartition, int] | None = None,
        now_ms: int,
    ) -> list[str]:
        """Make topics of the partition directories found on disk that belong to none.

        `found` gives the topic id in each `partition.metadata`, None without one; `epochs` the
        latest leader epoch in each log. Returns the names of the topics made or grown. Logs of
        topics in `deleting` are left out: delete them, then call `finish_deletions`.
        """
        adoptions = plan_adoptions(
            found,
            self.image,
            broker_id=self._broker_id,
            controller_epoch=self._metadata.controller_epoch,
            epochs=epochs or {},
            ignored=self.deleting,
        )
        operations: list[Operation] = []
        for adoption in adoptions:
            operations += self._adopt(adoption)
        adopted = [adoption.topic for adoption in adoptions]
        self._metadata.commit(operations, topics=adopted, now_ms=now_ms)
        return adopted

    def _adopt(self, adoption: Adoption) -> list[Operation]:
        if adoption.missing:
            _log.warning(
                "No log found: topic=%s partitions=%s; starting with empty logs",
                adoption.topic,
                ", ".join(map(str, adoption.missing)),
            )
        states = [((self._broker_id,), state) for state in adoption.states]
        known = self.image.topic(adoption.topic)
        if known is not None:
            return grow_topic(known, states)
        topic_id = adoption.id
        if topic_id is None or topic_id in self.image.topic_ids:
            topic_id = new_id(self._random)
        name = adoption.topic
        configured = self._store.exists(ConfigZnode.for_topic(name).path) is not None
        return create_topic(name, topic_id, states=states, config={}, configured=configured)

    def finish_deletions(self, *, now_ms: int) -> None:
        """Confirm that no log of a topic in `deleting` is left on disk."""
        with self._metadata.reading():
            self._follower.remove_marks(sorted(self.deleting), now_ms=now_ms)
        self.deleting = frozenset()

    def close(self) -> None:
        """End the session: this broker is neither registered nor the controller any more."""
        self._store.close()

    # --- topics

    def create_topics(
        self,
        new: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        admit: Admit = admit_all,
        principal: Principal,
        now_ms: int,
    ) -> list[CreatedTopic]:
        """Create topics, or only validate the requests; one answer for each, in order."""
        if not self.is_active:
            return [CreatedTopic(outcome=self._elsewhere(each.name)) for each in new]
        asked = events.TopicCreation(new, validate_only, admit)
        answers: list[CreatedTopic] = self.active.process(asked, now_ms=now_ms)
        if not validate_only:
            for topic in answers:
                if topic.outcome.granted:
                    _log.info(
                        "Created topic: topic=%s partitions=%d principal=%s",
                        topic.outcome.name,
                        topic.num_partitions,
                        principal,
                    )
        return answers

    def auto_create(
        self, names: Sequence[str], *, admit: Admit = admit_all, principal: Principal, now_ms: int
    ) -> list[CreatedTopic]:
        """Create topics that a request named, with the settings that such topics get."""
        wanted = [automatic_topic(name, self.settings) for name in names]
        return self.create_topics(wanted, admit=admit, principal=principal, now_ms=now_ms)

    def _elsewhere(self, name: str) -> Outcome:
        """The answer of a broker that is not the controller."""
        return Outcome(name, ErrorCode.NOT_CONTROLLER, "This is not the correct controller.")

    def delete_topics(
        self, names: Sequence[str], *, admit: Admit = admit_all, principal: Principal, now_ms: int
    ) -> list[Outcome]:
        """Delete topics; when this returns they are out of the image, and listeners know."""
        if not self.is_active:
            return [self._elsewhere(name) for name in names]
        known = [name for name in dict.fromkeys(names) if name in self.image.topics]
        unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        beyond = not_admitted(admit, {it: len(self.image.topics[it].partitions) for it in known})
        known = [name for name in known if name not in beyond]
        answers = [
            (Outcome(name) if name in self.image.topics else Outcome.refused(name, unknown))
            .unless_among(beyond) for name in names
        ]  # fmt: skip
        try:
            refused = self.active.process(events.TopicDeletion(known), now_ms=now_ms)
        except KafkaError as error:
            return [answer.unless_failed(error) for answer in answers]
        known = [name for name in known if name not in refused]
        if known:
            _log.info("Deleting topics: topics=%s principal=%s", ", ".join(known), principal)
        return [answer.unless_among(refused) for answer in answers]

    def create_partitions(
        self,
        growths: Sequence[Growth],
        *,
        validate_only: bool = False,
        admit: Admit = admit_all,
        principal: Principal,
        now_ms: int,
    ) -> list[Outcome]:
        """Add partitions to topics, or only validate the requests; one answer for each."""
        if not self.is_active:
            return [self._elsewhere(growth.name) for growth in growths]
        asked = events.PartitionCreation(growths, validate_only, admit)
        answers: list[Outcome] = self.active.process(asked, now_ms=now_ms)
        if not validate_only:
            for growth, answer in zip(growths, answers, strict=True):
                if answer.granted:
                    _log.info(
                        "Created partitions: topic=%s partitions=%d principal=%s",
                        growth.name,
                        growth.count,
                        principal,
                    )
        return answers

    def allocate_producer_ids(
        self, broker: int, broker_epoch: int | None, *, above: int, now_ms: int
    ) -> int:
        """The first id of a block for a broker; a broker claims its own, with no `broker_epoch`.

        Raises KafkaError NOT_CONTROLLER, BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH for others;
        COORDINATOR_LOAD_IN_PROGRESS where no block can be claimed now.
        """
        if broker_epoch is not None:
            self.check_active()
        asked = events.AllocateProducerIds(broker, broker_epoch, above)
        try:
            first: int = self.active.process(asked, now_ms=now_ms)
        except (CoordinationError, ZooKeeperError) as error:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error
        return first

    # --- settings

    def alter_configs(
        self,
        requests: Sequence[ConfigRequest],
        *,
        validate_only: bool = False,
        principal: Principal,
        now_ms: int,
    ) -> list[Outcome]:
        """Replace all settings of each resource by those sent; one answer for each, in order."""
        return self._settings.alter_all(requests, False, validate_only, principal, now_ms=now_ms)

    def incremental_alter_configs(
        self,
        requests: Sequence[ConfigRequest],
        *,
        validate_only: bool = False,
        principal: Principal,
        now_ms: int,
    ) -> list[Outcome]:
        """Apply single changes to the settings of each resource; one answer for each, in order."""
        return self._settings.alter_all(requests, True, validate_only, principal, now_ms=now_ms)
