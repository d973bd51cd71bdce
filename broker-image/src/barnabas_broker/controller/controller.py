"""The controller as handlers see it: performs what the pure modules beside it decide.

Each public method takes a request apart, asks the cores (`topics`, `configs`, `adoption`), has
what was granted written as one transaction, and answers for each part of the request. It decides
nothing itself.

Every broker has one. With a store of its own it is the controller for good; at a shared store it
stands for election, and is a member (`member`) while another broker holds the office, in which it
otherwise reigns (`active_controller`). Calls block for as long as the store takes, so one thread
makes all of them (`server.control.controller_thread`).
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from random import Random
from uuid import UUID

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import BrokerRegistration, MetadataImage, PartitionState
from barnabas_broker.controller import events
from barnabas_broker.controller.active_controller import ActiveController
from barnabas_broker.controller.adoption import Adoption, plan_adoptions
from barnabas_broker.controller.careful_election import EndsAnswer
from barnabas_broker.controller.client_quota_manager import ClientQuotaManager
from barnabas_broker.controller.config_manager import ConfigManager
from barnabas_broker.controller.controller_claim import contest
from barnabas_broker.controller.identity import new_id
from barnabas_broker.controller.internal import automatic_topic
from barnabas_broker.controller.isr_changes import IsrAnswer, IsrRequest, partitions_of
from barnabas_broker.controller.isr_writes import tell_in_sync, write_in_sync
from barnabas_broker.controller.loading import load_topic_znodes
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
    FirstState,
    create_topic,
    delete_topic,
    first_states,
    grow_topic,
)
from barnabas_broker.controller.topics import (
    NewTopic,
    Start,
    TakenNames,
    TopicDefaults,
    TopicPlan,
    plan_growth,
    plan_topic,
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
"""Who is said to have done what a tool did by writing znodes."""


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
        self._noted_late = False
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

    def remove_listener(self, listener: Listener) -> None:
        """Tell it of no more changes."""
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
        """Make this broker and its endpoints known.

        The registration of an earlier session is waited for. Raises CoordinationError where
        another broker of this id goes on living.
        """
        registered = self._own.make(broker, now_ms=now_ms)
        self.member.registered(registered.epoch)
        if self._first_epoch is None:
            self._first_epoch = registered.epoch
        brokers = {**self.image.brokers, broker.id: registered}
        self._metadata.publish(self.image.with_changes(brokers=brokers))

    def trust(self, *, now_ms: int) -> None:
        """No log of this broker lacks its end: its registration says so, now or later.

        Raises CoordinationError, ZooKeeperError; it is then said when the connection is back.
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
        """What all brokers are to be told, None where another broker tells them."""
        return self.active.view if self._shared and self.is_active else None

    @property
    def epoch(self) -> int:
        """The epoch of this controller; 0 before there was one."""
        return self._metadata.controller_epoch

    def check_reigns(self) -> None:
        """Raise KafkaError NOT_CONTROLLER where another broker is the controller."""
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller.")

    def hear_controller(self, controller_epoch: int, broker_epoch: int) -> ErrorCode | None:
        """A controller of that epoch asks something of the broker registered so.

        Returns why it is refused, None if it is to be obeyed: it has followed all before it.
        """
        refusal = self.member.standing.refusal(controller_epoch, broker_epoch)
        obsolete = self.is_active and controller_epoch <= self.epoch
        if refusal is None and (obsolete or not self._shared):
            refusal = ErrorCode.STALE_CONTROLLER_EPOCH
        if refusal is None:
            self.member.heard(controller_epoch)
            self.resign()
        return refusal

    def alter_partitions(self, request: IsrRequest, *, now_ms: int) -> list[IsrAnswer]:
        """Change who is in sync, as leaders ask, and end the moves that this completes.

        Raises KafkaError NOT_CONTROLLER, STALE_BROKER_EPOCH.
        """
        self.check_reigns()
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
        """A broker has said which of its replicas can be used; raises KafkaError as the reign."""
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
        """A broker has said how far its logs go; raises KafkaError as the reign."""
        if self._shared and self.is_active:
            answer = events.LogEndsReceived(broker, broker_epoch, answered)
            self.active.process(answer, now_ms=now_ms)

    def write_in_sync(
        self, tp: TopicPartition, wanted: PartitionState, *, now_ms: int
    ) -> PartitionState:
        """Write the in-sync replicas of a partition that is led here; the state it is then.

        Raises KafkaError INVALID_UPDATE_VERSION, and CoordinationError.
        """
        return write_in_sync(self._store, tp, wanted, now_ms=now_ms)

    def tell_in_sync(self, partitions: Collection[TopicPartition], *, now_ms: int) -> None:
        """Have the controller, which may be this one, hear of what was written so."""
        tell_in_sync(self._store, partitions, now_ms=now_ms)

    def contest(self, *, now_ms: int) -> bool:
        """Stand for election; whoever wins begins to reign, whoever does not is a member.

        Says whether a reign has begun, of which everything is yet to be watched.

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
            self.member.heard(claim.epoch)
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
        heard = ZnodeChanges(paths)
        failures = self._metadata.failures
        if paths is None:
            make_parents(self._store, now_ms=now_ms)
        self._keep_registration(heard, now_ms)
        if self._noted_late:
            self.note_log_dirs(now_ms=now_ms)
        begun = heard.of(ControllerZnode.PATH) and self.contest(now_ms=now_ms)
        steps = Steps()
        steps.take("settings", lambda: self._follower.read_settings(heard))
        if self.is_active:
            self._act_on(steps, ZnodeChanges(None) if begun else heard, now_ms)
        steps.raise_first()
        if paths is None:
            # A write that failed meanwhile, and whose error was an answer to somebody, counts on.
            self._metadata.mended(failures)

    @property
    def unsettled(self) -> bool:
        """Whether elections were refused that are retried (`settle_refused`)."""
        return self.is_active and bool(self.active.context.unsettled)

    def note_log_dirs(self, *, now_ms: int) -> None:
        """Have the controller ask about this broker's replicas: its log directories have changed.

        Without a connection that is done when it is back.
        """
        if not self._shared:
            return
        self._noted_late = True
        note = Create(
            LogDirEventZnode.PREFIX, LogDirEventZnode.encode(self._broker_id), sequential=True
        )
        try:
            self._store.commit([note], now_ms=now_ms)
        except (CoordinationError, ZooKeeperError) as error:
            _log.warning("Log directory failure not reported to the controller yet: %s", error)
            return
        self._noted_late = False

    def _act_on(self, steps: Steps, heard: ZnodeChanges, now_ms: int) -> None:
        """Take each step of a controller, also where another one has failed."""

        def take(what: str, event: events.Event) -> set[TopicPartition]:
            answers: list[set[TopicPartition]] = []
            steps.take(what, lambda: answers.append(self.active.process(event, now_ms=now_ms)))
            return answers[0] if answers else set()

        if self._shared:
            everything = heard.paths is None
            written: set[TopicPartition] = set()
            if heard.of(IsrChangeZnode.ROOT):
                isrs = events.IsrChangeNotification(anything=everything)
                written = take("in-sync replicas", isrs)
            for what, event in events_of(heard):
                take(what, event)
            some = None if everything else written
            take("moves under way", events.PartitionReassignmentIsrChange(some))
        steps.take("topics", lambda: self._read_topics(heard, now_ms))

    def _read_topics(self, heard: ZnodeChanges, now_ms: int) -> None:
        wished, pointless = self._follower.marked_topics(heard)
        pointless = [name for name in pointless if name not in self.active.context.deleting]
        if not self._settings.deletion_enabled:
            wished, pointless = [], wished + pointless
        self._follower.remove_marks(pointless, now_ms=now_ms)
        self._follower.ignored = frozenset(self.active.context.deleting)
        self._follower.read_topics(heard, self.active.leading, now_ms=now_ms)
        wished = [name for name in wished if name not in self.active.context.deleting]
        if wished:
            self.delete_topics(wished, principal=COORDINATION_DATA, now_ms=now_ms)

    def _keep_registration(self, heard: ZnodeChanges, now_ms: int) -> None:
        broker = self._own.wanted
        if broker is None or not heard.of(BrokerZnode(self._broker_id).path):
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
        return self._created(adoption.topic, topic_id, states, {})

    def finish_deletions(self, *, now_ms: int) -> None:
        """Say that no log of a topic in `deleting` is left on disk."""
        with self._metadata.reading():
            self._follower.remove_marks(sorted(self.deleting), now_ms=now_ms)
        self.deleting = frozenset()

    def close(self) -> None:
        """End the session: this broker is no longer registered, nor the controller."""
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
        """Create topics, or only say whether they could be; one answer for each, in order."""
        if not self.is_active:
            return [CreatedTopic(outcome=self._elsewhere(each.name)) for each in new]
        taken = TakenNames([*self.image.topics, *self.active.context.deleting])
        answers: list[CreatedTopic] = []
        operations: dict[str, list[Operation]] = {}
        for each in new:
            topic_id = None if validate_only else new_id(self._random)
            try:
                plan = self._plan(each, taken)
                if topic_id is not None:
                    admit(len(plan.replicas))
                    operations[plan.name] = self._creation(plan, topic_id)
            except Exception as error:  # The boundary between one topic and the others.
                told = refusal(error, "CreateTopics", each.name)
                answers.append(CreatedTopic(outcome=Outcome.refused(each.name, told)))
                continue
            taken.add(plan.name)
            answers.append(CreatedTopic.planned(plan, topic_id))
        try:
            failures, refused = self._metadata.commit_each(operations, now_ms=now_ms)
        except KafkaError as error:
            return [CreatedTopic(outcome=answer.outcome.unless_failed(error)) for answer in answers]
        answers = [answer.unless_among(refused) for answer in answers]
        created = [answer.outcome.name for answer in answers if answer.outcome.granted]
        if failures:
            # Without its logs the topic is of no use, and in the way of the next try.
            self.delete_topics(list(failures), principal=principal, now_ms=now_ms)
            answers = [answer.unless_among(failures) for answer in answers]
            created = [name for name in created if name not in failures]
        if not validate_only:
            for name in created:
                count = len(self.image.topics[name].partitions)
                _log.info(
                    "Created topic: topic=%s partitions=%d principal=%s", name, count, principal
                )
        return answers

    def auto_create(
        self, names: Sequence[str], *, admit: Admit = admit_all, principal: Principal, now_ms: int
    ) -> list[CreatedTopic]:
        """Create topics that somebody asked about, with the settings that such topics get."""
        wanted = [automatic_topic(name, self.settings) for name in names]
        return self.create_topics(wanted, admit=admit, principal=principal, now_ms=now_ms)

    def _plan(self, new: NewTopic, taken: TakenNames) -> TopicPlan:
        brokers = max(1, len(self.image.brokers))
        return plan_topic(
            new,
            self.image,
            taken=taken,
            defaults=TopicDefaults(
                num_partitions=self.settings[keys.NUM_PARTITIONS],
                replication_factor=self.settings[keys.DEFAULT_REPLICATION_FACTOR],
            ),
            start=Start(self._random.randrange(brokers), self._random.randrange(brokers)),
            check_config=partial(self._settings.check_topic, new.name),
        )

    def _creation(self, plan: TopicPlan, topic_id: UUID) -> list[Operation]:
        states = self._first_states(plan.replicas)
        with self._metadata.reading():
            return self._created(plan.name, topic_id, states, plan.config)

    def _created(
        self, name: str, topic_id: UUID, states: Sequence[FirstState], config: Mapping[str, str]
    ) -> list[Operation]:
        configured = self._store.exists(ConfigZnode.for_topic(name).path) is not None
        return create_topic(name, topic_id, states=states, config=config, configured=configured)

    def _first_states(self, replicas: Sequence[tuple[int, ...]]) -> list[FirstState]:
        """What new partitions start as; replicas that stand to stop are not in sync."""
        return first_states(
            replicas,
            controller_epoch=self._metadata.controller_epoch,
            without=self.active.context.stopping,
        )

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
        if self._shared:
            try:
                refused = self.active.process(events.TopicDeletion(known), now_ms=now_ms)
            except KafkaError as error:
                return [answer.unless_failed(error) for answer in answers]
            known = [name for name in known if name not in refused]
            _log.info("Deleting topics: topics=%s principal=%s", ", ".join(known), principal)
            return [answer.unless_among(refused) for answer in answers]
        try:
            with self._metadata.reading():
                operations = {
                    name: delete_topic(name, load_topic_znodes(self._store, name)) for name in known
                }
            # The marks say what is to go: a crash ends with logs deleted, not with topics back.
            failures, refused = self._metadata.commit_each(operations, removed=True, now_ms=now_ms)
        except KafkaError as error:
            return [answer.unless_failed(error) for answer in answers]
        answers = [answer.unless_among(refused) for answer in answers]
        known = [name for name in known if name not in refused]
        self.deleting |= frozenset(known)
        try:
            self.finish_deletions(now_ms=now_ms)
        except KafkaError as error:
            # The topics are gone; only the marks are left, and the next start looks after those.
            _log.warning("Topic deletion not completed yet: %s", error.message)
        for name in known:
            if name in failures:
                _log.error("Failed to delete logs: topic=%s %s", name, failures[name].message)
            _log.info("Deleted topic: topic=%s principal=%s", name, principal)
        return answers

    def create_partitions(
        self,
        growths: Sequence[Growth],
        *,
        validate_only: bool = False,
        admit: Admit = admit_all,
        principal: Principal,
        now_ms: int,
    ) -> list[Outcome]:
        """Add partitions to topics, or only say whether they could be; one answer for each."""
        if not self.is_active:
            return [self._elsewhere(growth.name) for growth in growths]
        answers: list[Outcome] = []
        operations: dict[str, list[Operation]] = {}
        for growth in growths:
            try:
                added = self._growth(growth)
                if not validate_only:
                    admit(growth.count - len(self.image.topics[growth.name].partitions))
                operations[growth.name] = added
                answers.append(Outcome(growth.name))
            except Exception as error:  # The boundary between one topic and the others.
                told = refusal(error, "CreatePartitions", growth.name)
                answers.append(Outcome.refused(growth.name, told))
        if validate_only:
            return answers
        try:
            failures, refused = self._metadata.commit_each(operations, now_ms=now_ms)
        except KafkaError as error:
            return [answer.unless_failed(error) for answer in answers]
        answers = [answer.unless_among({**failures, **refused}) for answer in answers]
        for name in operations.keys() - refused.keys():
            count = len(self.image.topics[name].partitions)
            _log.info(
                "Created partitions: topic=%s partitions=%d principal=%s", name, count, principal
            )
        return answers

    def _growth(self, growth: Growth) -> list[Operation]:
        topic = self.image.topic(growth.name)
        if topic is None:
            message = f"The topic '{growth.name}' does not exist."
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        added = plan_growth(topic, self.image, count=growth.count, assignments=growth.assignments)
        return grow_topic(topic, self._first_states(added))

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
