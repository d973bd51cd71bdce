"""The cluster as a broker knows it: one immutable value that every request is served from.

A change makes a new `MetadataImage` that shares everything unchanged with the one before, so a
handler that took an image keeps a consistent view for as long as it likes. Only the controller
makes images; `version` grows by one with each and is what caches are keyed by.

Invariants: `topic_ids` is the inverse of `topics`; partitions of a topic are numbered from 0
without gaps; `leader` is `NO_LEADER` or one of `replicas`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from barnabas_kafka.ids import TopicPartition

NO_LEADER = -1
NO_CONTROLLER = -1
# The key of the cluster-wide defaults among `broker_configs`.
DEFAULT_BROKER = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a broker is reached through one listener (as advertised, not as bound)."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A live broker. `epoch` is the one of its registration (KIP-380), -1 where unknown."""

    id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = -1

    def endpoint(self, listener: str) -> Endpoint | None:
        """The address that clients of `listener` must use, None if the broker lacks it."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Who holds a partition and who leads it.

    `replicas` is in order of preference. `partition_epoch` counts changes of this state (the
    version of its znode).
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    controller_epoch: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic: `config` holds only what was set for the topic itself."""

    name: str
    id: UUID
    partitions: tuple[PartitionState, ...]
    config: Mapping[str, str] = field(default_factory=dict)

    def partition(self, partition: int) -> PartitionState | None:
        """The state of one partition, None if the topic has none of that number."""
        return self.partitions[partition] if 0 <= partition < len(self.partitions) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    """Brokers, topics and dynamic configuration at one moment.

    `broker_configs` maps a broker id in decimal, or `DEFAULT_BROKER` for the cluster-wide
    defaults, to dynamic broker settings. `memo` is for what others work out from an image and want
    to keep for as long as it is the current one; each image starts without.
    """

    cluster_id: str
    controller_id: int = NO_CONTROLLER
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_ids: Mapping[UUID, str] = field(default_factory=dict)
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    version: int = 0
    memo: dict[object, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

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

    def with_changes(
        self,
        *,
        put: tuple[TopicImage, ...] = (),
        remove: frozenset[str] = frozenset(),
        broker_configs: Mapping[str, Mapping[str, str]] | None = None,
        brokers: Mapping[int, BrokerRegistration] | None = None,
        controller_id: int | None = None,
    ) -> "MetadataImage":
        """The next image: topics put or removed by name, other parts replaced where given."""
        topics, topic_ids = self.topics, self.topic_ids
        if put or remove:
            topics, topic_ids = dict(topics), dict(topic_ids)
            for name in remove:
                topic_ids.pop(topics.pop(name).id)
            for topic in put:
                before = topics.get(topic.name)
                if before is not None:
                    topic_ids.pop(before.id)
                topics[topic.name] = topic
                topic_ids[topic.id] = topic.name
        return replace(
            self,
            topics=topics,
            topic_ids=topic_ids,
            broker_configs=self.broker_configs if broker_configs is None else broker_configs,
            brokers=self.brokers if brokers is None else brokers,
            controller_id=self.controller_id if controller_id is None else controller_id,
            version=self.version + 1,
        )
