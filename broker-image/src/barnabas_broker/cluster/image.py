"""The cluster as a broker knows it: one immutable value that every request is served from.

A change makes a new `MetadataImage` that shares everything unchanged with the one before, so a
handler that took an image keeps a consistent view for as long as it likes. Only the
controller's thread makes images; `version` grows by one with each and is what caches are keyed by.

Invariants: `topic_ids` is the inverse of `topics`, as far as they have ids (`ids_of`); partitions
of a topic are numbered from 0 without gaps; `leader` is `NO_LEADER` or one of `replicas`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from barnabas_broker.cluster.lineage import Lineage, Touched
from barnabas_broker.cluster.quota_entity import QuotaConfigs
from barnabas_kafka.ids import ZERO_UUID, TopicPartition

NO_LEADER = -1
NO_CONTROLLER = -1
# What brokers of this software call it when they register.
OWN_SOFTWARE = "barnabas"
# The key of the cluster-wide defaults among `broker_configs`.
DEFAULT_BROKER = ""

_ANNOUNCED: Final = (__name__, "announced")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a broker is reached through one listener (as advertised, not as bound)."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"
    server_name: str = ""
    """The host that its certificate names, where that is not `host`."""


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A live broker. `epoch` is the one of its registration (KIP-380), -1 where unknown.

    `software` is what the broker says it runs; brokers of Apache say nothing. One that is `unclean`
    was not stopped in order before: its logs may lack their ends (barnabas.unclean.registration).
    """

    id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = -1
    software: str | None = None
    unclean: bool = False

    def endpoint(self, listener: str) -> Endpoint | None:
        """The address that clients of `listener` must use, None if the broker lacks it."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The replicas of a partition and its leader.

    `replicas` is in order of preference. `partition_epoch` counts changes of this state (the
    version of its znode). `offline` are replicas that cannot be used although their broker is
    alive: a log directory has failed there. A leader that is `recovering` was elected although it
    was not in sync (KIP-704).
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    controller_epoch: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    partition_epoch: int = 0
    offline: tuple[int, ...] = ()
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic: `config` holds only what was set for the topic itself.

    `announced` is the number of partitions visible to clients, None for all. LeaderAndIsr names
    only the partitions of one broker; UpdateMetadata, which follows, names all.
    """

    name: str
    id: UUID
    partitions: tuple[PartitionState, ...]
    config: Mapping[str, str] = field(default_factory=dict)
    announced: int | None = None

    def is_same_as(self, id_: UUID) -> bool:
        """Whether a topic of this name and that id is this one: the zero id matches any."""
        return self.id == id_ or ZERO_UUID in (self.id, id_)

    @property
    def brokers(self) -> set[int]:
        """The brokers that have replicas of it."""
        return {broker for state in self.partitions for broker in state.replicas}

    def partition(self, partition: int) -> PartitionState | None:
        """The state of one partition, None if the topic has none of that number."""
        return self.partitions[partition] if 0 <= partition < len(self.partitions) else None

    def with_offline_of(self, known: "TopicImage | None") -> "TopicImage":
        """The topic, as read again, with the replicas that were known not to be usable."""
        if known is None or known.id != self.id:
            return self
        partitions = list(self.partitions)
        for number, before in enumerate(known.partitions[: len(partitions)]):
            if before.offline:
                partitions[number] = replace(partitions[number], offline=before.offline)
        return replace(self, partitions=tuple(partitions))


def ids_of(topics: Iterable[TopicImage]) -> dict[UUID, str]:
    """Names by id; controllers before 2.8 give topics none, which is the zero id here."""
    return {topic.id: topic.name for topic in topics if topic.id != ZERO_UUID}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    """Brokers, topics and dynamic configuration at one moment.

    `broker_configs` maps a broker id in decimal, or `DEFAULT_BROKER` for the cluster-wide
    defaults, to dynamic broker settings. `user_configs` maps a user to what is set for it: SCRAM
    credentials, which must not be shown. `quota_configs` has the quotas of clients and addresses,
    those of users among them. `partial` are the topics that are not fully announced.
    `memo` is for what others work out from an image and want to keep for as long as it is the
    current one; each image starts without. `lineage` has the differences from the images before.
    """

    cluster_id: str
    controller_id: int = NO_CONTROLLER
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_ids: Mapping[UUID, str] = field(default_factory=dict)
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    user_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    quota_configs: QuotaConfigs = field(default_factory=dict)
    version: int = 0
    partial: frozenset[str] = frozenset()
    memo: dict[object, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    # Never taken over by `replace`: what that changes is not noted.
    lineage: Lineage = field(default_factory=Lineage, init=False, compare=False, repr=False)

    @property
    def announced(self) -> "MetadataImage":
        """The image that clients and coordinators use: only what UpdateMetadata has announced.

        A partition count that is too small would hash groups and transactional ids to the wrong
        coordinator.
        """
        if not self.partial:
            return self
        found = self.memo.get(_ANNOUNCED)
        if found is None:
            topics = dict(self.topics)
            for name in self.partial:
                topic = topics.pop(name)
                if topic.announced:
                    partitions = topic.partitions[: topic.announced]
                    topics[name] = replace(topic, partitions=partitions, announced=None)
            found = self.memo[_ANNOUNCED] = replace(
                self, topics=topics, topic_ids=ids_of(topics.values()), partial=frozenset()
            )
        return cast("MetadataImage", found)

    @property
    def without_topics(self) -> "MetadataImage":
        """What a broker knows of a cluster before a controller speaks to it."""
        return MetadataImage(
            cluster_id=self.cluster_id,
            broker_configs=self.broker_configs,
            user_configs=self.user_configs,
            quota_configs=self.quota_configs,
        )

    def topic(self, name: str) -> TopicImage | None:
        """The topic of that name, None if there is none."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        """The topic with that id, None if there is none."""
        name = self.topic_ids.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic_partition: TopicPartition) -> PartitionState | None:
        """The state of a partition, None if topic or partition do not exist."""
        topic = self.topics.get(topic_partition.topic)
        return None if topic is None else topic.partition(topic_partition.partition)

    def all_partitions(self) -> Iterator[TopicPartition]:
        """Every partition of every topic."""
        for topic in self.topics.values():
            for number in range(len(topic.partitions)):
                yield TopicPartition(topic.name, number)

    def leaderless(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """The partitions without a leader."""
        for topic in self.topics.values():
            for number, state in enumerate(topic.partitions):
                if state.leader == NO_LEADER:
                    yield TopicPartition(topic.name, number), state

    def with_changes(
        self,
        *,
        put: tuple[TopicImage, ...] = (),
        remove: frozenset[str] = frozenset(),
        broker_configs: Mapping[str, Mapping[str, str]] | None = None,
        user_configs: Mapping[str, Mapping[str, str]] | None = None,
        quota_configs: QuotaConfigs | None = None,
        brokers: Mapping[int, BrokerRegistration] | None = None,
        controller_id: int | None = None,
    ) -> "MetadataImage":
        """The next image: topics put or removed by name, other parts replaced where given."""
        touched: Touched = dict.fromkeys([*(topic.name for topic in put), *remove])
        topics, topic_ids, partial = self.topics, self.topic_ids, self.partial
        if put or remove:
            partial = partial - remove - {topic.name for topic in put}
            partial |= {topic.name for topic in put if topic.announced is not None}
            topics, topic_ids = dict(topics), dict(topic_ids)
            for name in remove:
                topic_ids.pop(topics.pop(name).id, None)
            for topic in put:
                before = topics.get(topic.name)
                if before is not None:
                    topic_ids.pop(before.id, None)
                topics[topic.name] = topic
                topic_ids |= ids_of((topic,))
        after = replace(
            self,
            topics=topics,
            topic_ids=topic_ids,
            partial=partial,
            broker_configs=self.broker_configs if broker_configs is None else broker_configs,
            user_configs=self.user_configs if user_configs is None else user_configs,
            quota_configs=self.quota_configs if quota_configs is None else quota_configs,
            brokers=self.brokers if brokers is None else brokers,
            controller_id=self.controller_id if controller_id is None else controller_id,
            version=self.version + 1,
        )
        object.__setattr__(after, "lineage", self.lineage.then(touched))
        return after

    def with_partitions(
        self,
        states: Mapping[TopicPartition, PartitionState],
        *,
        brokers: Mapping[int, BrokerRegistration] | None = None,
    ) -> "MetadataImage":
        """The next image: these partitions, which there are, in these states."""
        numbers: dict[str, list[int]] = {}
        for tp in states:
            numbers.setdefault(tp.topic, []).append(tp.partition)
        topics = dict(self.topics)
        for name, those in numbers.items():
            partitions = list(self.topics[name].partitions)
            for number in those:
                partitions[number] = states[TopicPartition(name, number)]
            topics[name] = replace(self.topics[name], partitions=tuple(partitions))
        after = replace(
            self,
            topics=topics if states else self.topics,
            brokers=self.brokers if brokers is None else brokers,
            version=self.version + 1,
        )
        touched = {name: frozenset(those) for name, those in numbers.items()}
        object.__setattr__(after, "lineage", self.lineage.then(touched))
        return after

    def differences(self, old: "MetadataImage") -> Iterator["TopicDifference"]:
        """The topics that are not the same objects as in an earlier image."""
        touched = self.lineage.since(old.lineage)
        if touched is None:
            gone = old.topics.keys() - self.topics.keys()
            touched = dict.fromkeys([*self.topics, *(name for name in old.topics if name in gone)])
        for name, numbers in touched.items():
            before, after = old.topics.get(name), self.topics.get(name)
            if before is not after:
                yield TopicDifference(name, before, after, numbers)


class TopicDifference(NamedTuple):
    """A topic in two images, None where it is not in one; `numbers` are those of the partitions
    that may differ, None for any, the topic's settings included.
    """

    name: str
    before: TopicImage | None
    after: TopicImage | None
    numbers: frozenset[int] | None

    @property
    def replaced(self) -> bool:
        """Whether the topic that there was is no more, also where another one has its name."""
        before, after = self.before, self.after
        return before is not None and (after is None or not after.is_same_as(before.id))

    def partitions(self) -> Iterator[tuple[int, PartitionState | None, PartitionState]]:
        """The partitions there are now that are not the same objects as before.

        Number, state before if there was one in the same topic, and state now.
        """
        if self.after is None:
            return
        after = self.after.partitions
        before = () if self.before is None or self.replaced else self.before.partitions
        if self.numbers is not None:
            for number in sorted(self.numbers):
                known = before[number] if number < len(before) else None
                if known is not after[number]:
                    yield number, known, after[number]
            return
        for number, (state, known) in enumerate(zip_longest(after, before[: len(after)])):
            if known is not state:
                yield number, known, state
