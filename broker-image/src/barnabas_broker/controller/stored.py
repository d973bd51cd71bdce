"""What is on record in the coordination store of topics and partitions, as values."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas_broker.cluster.image import NO_LEADER, PartitionState, TopicImage
from barnabas_broker.zk.znodes import (
    LeaderAndIsr,
    ProducerIdBlock,
    ReplicaAssignment,
    TopicAssignment,
)
from barnabas_kafka.ids import ZERO_UUID

# A partition that has replicas but was never led: only tools make such, by writing the topic alone.
_NEVER_LED = LeaderAndIsr(leader=NO_LEADER, leader_epoch=-1, isr=(), controller_epoch=-1)


class StoredState(NamedTuple):
    """A partition's state with the version of its znode and the transaction that wrote it."""

    state: LeaderAndIsr
    version: int
    mzxid: int


class StoredProducerIdBlock(NamedTuple):
    """The block of producer ids that was claimed last, with the version of its znode."""

    block: ProducerIdBlock
    version: int


class StoredTopic(NamedTuple):
    """A topic with all that is on record of it; a partition's state is None where it has none."""

    name: str
    assignment: TopicAssignment
    states: Mapping[int, StoredState | None]
    config: Mapping[str, str]

    @property
    def image(self) -> TopicImage:
        """The same as brokers serve it."""
        partitions = tuple(
            _partition(replicas, self.states[number])
            for number, replicas in sorted(self.assignment.partitions.items())
        )
        return TopicImage(self.name, self.assignment.id or ZERO_UUID, partitions, self.config)


class StoredTopics(NamedTuple):
    """The topics that can be read, by name, and the names of all that were asked for."""

    names: Sequence[str]
    found: Mapping[str, StoredTopic]


class TopicZnodes(NamedTuple):
    """Which znodes there are of a topic: its own and those below, children first, and two more.

    `marked` is whether it is marked for deletion, `configured` whether settings have a znode.
    """

    paths: tuple[str, ...]
    marked: bool
    configured: bool


def new_partition(replicas: tuple[int, ...], state: LeaderAndIsr) -> PartitionState:
    """A partition whose znode has been created with that state: its version is 0."""
    return _partition(ReplicaAssignment(replicas), StoredState(state, version=0, mzxid=0))


def _partition(assignment: ReplicaAssignment, loaded: StoredState | None) -> PartitionState:
    state, version = (_NEVER_LED, 0) if loaded is None else (loaded.state, loaded.version)
    return PartitionState(
        replicas=assignment.replicas,
        isr=state.isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        controller_epoch=state.controller_epoch,
        adding=assignment.adding,
        removing=assignment.removing,
        partition_epoch=version,
        recovering=state.recovering,
    )
