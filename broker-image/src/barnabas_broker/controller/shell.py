"""The controller as handlers see it: performs what the pure modules beside it decide.

Each public method takes a request apart, asks the cores (`topics`, `configs`, `adoption`), has
what was granted written as one transaction, and answers for each part of the request. It decides
nothing itself.

The broker is the only one of its cluster and always its controller. Calls block for as long as the
store takes, so one thread makes all of them (`server.controller_thread`).
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from random import Random
from uuid import UUID

from barnabas_broker.cluster.image import BrokerRegistration, MetadataImage
from barnabas_broker.controller import writes
from barnabas_broker.controller.adoption import Adoption, plan_adoptions
from barnabas_broker.controller.following import Follower, Heard
from barnabas_broker.controller.identity import new_id
from barnabas_broker.controller.internal import automatic_topic
from barnabas_broker.controller.ledger import Ledger, Listener
from barnabas_broker.controller.office import wait_for_own_ghost
from barnabas_broker.controller.requests import ConfigRequest, CreatedTopic, Growth, Outcome
from barnabas_broker.controller.settings_shell import SettingsShell
from barnabas_broker.controller.startup import take_over
from barnabas_broker.controller.topics import (
    NewTopic,
    Start,
    TakenNames,
    TopicDefaults,
    TopicPlan,
    plan_growth,
    plan_topic,
)
from barnabas_broker.security.principals import Principal
from barnabas_broker.zk.store import CoordinationStore, Create, Delete, Operation, Watch
from barnabas_broker.zk.znodes import BrokerZnode
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

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
        self._ledger = Ledger(store)
        self._settings = SettingsShell(self._ledger, broker_id=broker_id, settings=settings)
        self._broker_id = broker_id
        self._random = random
        self._registration: BrokerRegistration | None = None
        self._follower = Follower(self._ledger, self._settings, broker_id, random)

    @property
    def image(self) -> MetadataImage:
        """The cluster as it is now."""
        return self._ledger.image

    @property
    def settings(self) -> BrokerSettings:
        """This broker's settings as they are now, changes at run time included."""
        return self._settings.settings

    # --- life

    def add_listener(self, listener: Listener) -> None:
        """Have `listener(old, new)` called after each change of the image."""
        self._ledger.add_listener(listener)

    def remove_listener(self, listener: Listener) -> None:
        """Tell it of no more changes."""
        self._ledger.remove_listener(listener)

    def start(
        self, *, cluster_id: str | None, now_ms: int, found_new: bool = True
    ) -> MetadataImage:
        """Become the controller; listeners are not called.

        `cluster_id` is the one in meta.properties, None for new directories; `found_new` says
        whether a store without an identity takes it. Raises CoordinationError or
        MalformedZnodeError, one line each, where the stored data does not fit or cannot be read.
        """
        taken = take_over(
            self._store,
            broker_id=self._broker_id,
            cluster_id=cluster_id,
            deletion_enabled=self.settings[keys.DELETE_TOPIC_ENABLE],
            random=self._random,
            now_ms=now_ms,
            found_new=found_new,
        )
        self._ledger.image = taken.image
        self._ledger.office = taken.office
        self.deleting = taken.deleting
        self._settings.load(self.image.broker_configs)
        return self.image

    def register(self, broker: BrokerRegistration, *, now_ms: int) -> None:
        """Make this broker and its endpoints known.

        The registration of an earlier session is waited for. Raises CoordinationError where
        another broker of this id goes on living.
        """
        znode = BrokerZnode(broker.id)
        data = znode.encode(broker, now_ms=now_ms)
        stat = self._store.exists(znode.path)
        operations: list[Operation] = []
        if stat is not None and stat.ephemeral_owner == self._store.session:
            operations.append(Delete(znode.path))
        elif stat is not None:
            wait_for_own_ghost(self._store, broker.id)
        operations.append(Create(znode.path, data, ephemeral_owner=self._store.session))
        self._store.commit(operations, now_ms=now_ms)
        written, stat = self._store.get(znode.path)
        registered = znode.decode(written, epoch=stat.czxid)
        self._registration = broker
        self._ledger.publish(self.image.with_changes(brokers={broker.id: registered}))

    @property
    def stale(self) -> bool:
        """Whether a write failed so that everything must be read again."""
        return self._ledger.stale

    def catch_up(self, paths: Collection[str] | None, *, now_ms: int) -> None:
        """Act on what others wrote to the znodes of these paths, or to any, and watch for more.

        Raises OccupiedError where another broker has become the controller; CoordinationError,
        ZooKeeperError or KafkaError where the store failed or changed on the way.
        """
        heard = Heard(paths)
        self._follower.keep_office(heard, now_ms=now_ms)
        self._keep_registration(heard, now_ms)
        wished, pointless = self._follower.marked_topics(heard)
        if not self.settings[keys.DELETE_TOPIC_ENABLE]:
            wished, pointless = [], wished + pointless
        self._follower.remove_marks(pointless, now_ms=now_ms)
        self._follower.read(heard, now_ms=now_ms)
        if wished:
            self.delete_topics(wished, principal=COORDINATION_DATA, now_ms=now_ms)
        if paths is None:
            self._ledger.stale = False

    def _keep_registration(self, heard: Heard, now_ms: int) -> None:
        if self._registration is None or not heard.of(BrokerZnode(self._broker_id).path):
            return
        path = BrokerZnode(self._broker_id).path
        self._store.watch(path, Watch.DATA)
        stat = self._store.exists(path)
        if stat is None or stat.ephemeral_owner != self._store.session:
            _log.warning("registering broker %d again", self._broker_id)
            self.register(self._registration, now_ms=now_ms)

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
            controller_epoch=self._ledger.controller_epoch,
            epochs=epochs or {},
            ignored=self.deleting,
        )
        operations: list[Operation] = []
        for adoption in adoptions:
            operations += self._adopt(adoption)
        adopted = [adoption.topic for adoption in adoptions]
        self._ledger.commit(operations, topics=adopted, now_ms=now_ms)
        return adopted

    def _adopt(self, adoption: Adoption) -> list[Operation]:
        if adoption.missing:
            _log.warning(
                "topic %s has no directory for partitions %s; they start empty",
                adoption.topic,
                ", ".join(map(str, adoption.missing)),
            )
        states = [((self._broker_id,), state) for state in adoption.states]
        known = self.image.topic(adoption.topic)
        if known is not None:
            return writes.grow_topic(known, states)
        topic_id = adoption.id
        if topic_id is None or topic_id in self.image.topic_ids:
            topic_id = new_id(self._random)
        return writes.create_topic(self._store, adoption.topic, topic_id, states=states, config={})

    def finish_deletions(self, *, now_ms: int) -> None:
        """Say that no log of a topic in `deleting` is left on disk."""
        with self._ledger.reading():
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
        principal: Principal,
        now_ms: int,
    ) -> list[CreatedTopic]:
        """Create topics, or only say whether they could be; one answer for each, in order."""
        taken = TakenNames(self.image.topics)
        answers: list[CreatedTopic] = []
        operations: list[Operation] = []
        for each in new:
            topic_id = None if validate_only else new_id(self._random)
            try:
                plan = self._plan(each, taken)
                if topic_id is not None:
                    operations += self._creation(plan, topic_id)
            except KafkaError as error:
                answers.append(CreatedTopic(outcome=Outcome.refused(each.name, error)))
                continue
            taken.add(plan.name)
            answers.append(CreatedTopic.planned(plan, topic_id))
        created = [answer.outcome.name for answer in answers if answer.outcome.granted]
        try:
            failures = self._ledger.commit(operations, topics=created, now_ms=now_ms)
        except KafkaError as error:
            return [CreatedTopic(outcome=answer.outcome.unless_failed(error)) for answer in answers]
        if failures:
            # Without its logs the topic is of no use, and in the way of the next try.
            self.delete_topics(list(failures), principal=principal, now_ms=now_ms)
            answers = [answer.unless_among(failures) for answer in answers]
            created = [name for name in created if name not in failures]
        if not validate_only:
            for name in created:
                count = len(self.image.topics[name].partitions)
                _log.info("created topic %s with %d partitions for %s", name, count, principal)
        return answers

    def auto_create(
        self, names: Sequence[str], *, principal: Principal, now_ms: int
    ) -> list[CreatedTopic]:
        """Create topics that somebody asked about, with the settings that such topics get."""
        wanted = [automatic_topic(name, self.settings) for name in names]
        return self.create_topics(wanted, principal=principal, now_ms=now_ms)

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
            check_config=self._settings.check_topic,
        )

    def _creation(self, plan: TopicPlan, topic_id: UUID) -> list[Operation]:
        states = writes.first_states(plan.replicas, controller_epoch=self._ledger.controller_epoch)
        with self._ledger.reading():
            return writes.create_topic(
                self._store, plan.name, topic_id, states=states, config=plan.config
            )

    def delete_topics(
        self, names: Sequence[str], *, principal: Principal, now_ms: int
    ) -> list[Outcome]:
        """Delete topics; when this returns they are out of the image, and listeners know."""
        known = [name for name in dict.fromkeys(names) if name in self.image.topics]
        unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        answers = [
            Outcome(name) if name in self.image.topics else Outcome.refused(name, unknown)
            for name in names
        ]
        operations: list[Operation] = []
        try:
            with self._ledger.reading():
                for name in known:
                    operations += writes.delete_topic(self._store, name)
            # The marks say what is to go while the listeners are at it: a crash between the two
            # transactions ends with the logs deleted, not with the topics back.
            failures = self._ledger.commit(operations, removed=known, now_ms=now_ms)
        except KafkaError as error:
            return [answer.unless_failed(error) for answer in answers]
        self.deleting |= frozenset(known)
        try:
            self.finish_deletions(now_ms=now_ms)
        except KafkaError as error:
            # The topics are gone; only the marks are left, and the next start looks after those.
            _log.warning("marks of deleted topics remain: %s", error.message)
        for name in known:
            if name in failures:
                _log.error("logs of topic %s remain: %s", name, failures[name].message)
            _log.info("deleted topic %s for %s", name, principal)
        return answers

    def create_partitions(
        self,
        growths: Sequence[Growth],
        *,
        validate_only: bool = False,
        principal: Principal,
        now_ms: int,
    ) -> list[Outcome]:
        """Add partitions to topics, or only say whether they could be; one answer for each."""
        answers: list[Outcome] = []
        operations: list[Operation] = []
        for growth in growths:
            try:
                operations += self._growth(growth)
                answers.append(Outcome(growth.name))
            except KafkaError as error:
                answers.append(Outcome.refused(growth.name, error))
        if validate_only:
            return answers
        grown = [answer.name for answer in answers if answer.granted]
        try:
            failures = self._ledger.commit(operations, topics=grown, now_ms=now_ms)
        except KafkaError as error:
            return [answer.unless_failed(error) for answer in answers]
        answers = [answer.unless_among(failures) for answer in answers]
        for name in grown:
            count = len(self.image.topics[name].partitions)
            _log.info("topic %s now has %d partitions for %s", name, count, principal)
        return answers

    def _growth(self, growth: Growth) -> list[Operation]:
        topic = self.image.topic(growth.name)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"The topic '{growth.name}' does not exist.",
            )
        added = plan_growth(topic, self.image, count=growth.count, assignments=growth.assignments)
        epoch = self._ledger.controller_epoch
        return writes.grow_topic(topic, writes.first_states(added, controller_epoch=epoch))

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
        return self._alter(requests, False, validate_only, principal, now_ms=now_ms)

    def incremental_alter_configs(
        self,
        requests: Sequence[ConfigRequest],
        *,
        validate_only: bool = False,
        principal: Principal,
        now_ms: int,
    ) -> list[Outcome]:
        """Apply single changes to the settings of each resource; one answer for each, in order."""
        return self._alter(requests, True, validate_only, principal, now_ms=now_ms)

    def _alter(
        self,
        requests: Sequence[ConfigRequest],
        incremental: bool,
        validate_only: bool,
        principal: Principal,
        *,
        now_ms: int,
    ) -> list[Outcome]:
        answers = []
        for request in requests:
            answer = self._settings.alter(
                request, incremental=incremental, validate_only=validate_only, now_ms=now_ms
            )
            answers.append(answer)
            if answer.granted and not validate_only:
                names = ", ".join(change.name for change in request.changes)
                kind = request.resource.name.lower()
                _log.info("altered %s of %s %r for %s", names, kind, request.name, principal)
        return answers
