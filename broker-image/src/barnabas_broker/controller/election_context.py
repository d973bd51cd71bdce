"""What to write so that the partitions of a topic have leaders, as far as any can lead them.

Old tools write a topic's assignment alone: its id and its partitions are then made here. The
partitions that there are go through `elections.settle`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from barnabas_broker.controller.elections import LiveBrokers, first_leader, settle, unseen_restarts
from barnabas_broker.controller.identity import new_id
from barnabas_broker.controller.stored import StoredState, StoredTopic
from barnabas_broker.controller.topic_znodes import create_partition
from barnabas_broker.zk.operations import Create, Operation, SetData
from barnabas_broker.zk.znodes import (
    LeaderAndIsr,
    PartitionStateZnode,
    ReplicaAssignment,
    TopicAssignment,
    TopicZnode,
)
from barnabas_kafka.ids import TopicPartition

Uncleanly = Callable[[Mapping[str, str]], bool]
"""Whether a topic with these settings may have a leader that was not in sync."""


def _never(_: Mapping[str, str]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ElectionContext:
    """The context of elections: the live brokers, the controller epoch, new ids.

    `registered` has the registration epochs of brokers, where they are transactions of the store
    that has the partitions' states too. `offline` are brokers whose log directory with a replica
    takes nothing. `unclean_shutdowns` are brokers that registered after one: it is unknown whether
    the ISRs have been without them since.
    """

    present: LiveBrokers
    epoch: int
    random: Random
    unclean: Uncleanly = _never
    registered: Mapping[int, int] = field(default_factory=dict)
    offline: Mapping[TopicPartition, Collection[int]] = field(default_factory=dict)
    unclean_shutdowns: frozenset[int] = frozenset()

    def present_for(self, tp: TopicPartition, stored: StoredState) -> LiveBrokers:
        """The live replicas of a partition, and those restarted since its state was written."""
        present = self.present.without(self.offline.get(tp, ()))
        restarted = unseen_restarts(
            stored.state.leader,
            stored.mzxid,
            registered=self.registered,
            unclean_shutdowns=self.unclean_shutdowns,
        )
        if not restarted:
            return present
        return replace(present, restarted=restarted.union(present.restarted))


def in_question(topic: StoredTopic) -> list[str]:
    """The znodes of a topic of which `lead_topic` has to know whether they exist.

    They do where a creation was cut off; of a topic that is whole there are none in question.
    """
    paths = [
        PartitionStateZnode(topic.name, number).parent
        for number, state in topic.states.items()
        if state is None
    ]
    return paths if any(topic.states.values()) else [TopicZnode(topic.name).partitions_path, *paths]


def lead_topic(
    topic: StoredTopic, leading: ElectionContext, *, existing: Collection[str]
) -> list[Operation]:
    """Elect leaders for partitions of a topic that need one; give the topic an id if it has none.

    `topic` is as it was read, and is to be read again once this is written; `existing` are those of
    the znodes `in_question` that there are.
    """
    name, assignment, states = topic.name, topic.assignment, topic.states
    operations: list[Operation] = []
    znode = TopicZnode(name)
    if assignment.id is None:
        data = znode.encode(TopicAssignment(new_id(leading.random), assignment.partitions))
        operations.append(SetData(znode.path, data))
    if not any(states.values()) and znode.partitions_path not in existing:
        operations.append(Create(znode.partitions_path))
    unclean: bool | None = None
    for number, replicas in assignment.partitions.items():
        loaded = states[number]
        if loaded is None:
            operations += _first(name, number, replicas, leading, existing)
            continue
        state = loaded.state
        present = leading.present_for(TopicPartition(name, number), loaded)
        if unclean is None and state.leader not in present.steady:
            unclean = leading.unclean(topic.config)
        settled = settle(
            replicas.replicas,
            state,
            present,
            unclean=bool(unclean),
            controller_epoch=leading.epoch,
        )
        if settled is not None:
            written = PartitionStateZnode(name, number)
            operations.append(SetData(written.path, written.encode(settled), loaded.version))
    return operations


def _first(
    topic: str,
    number: int,
    replicas: ReplicaAssignment,
    leading: ElectionContext,
    existing: Collection[str],
) -> list[Operation]:
    """A partition that was only assigned starts from the replicas alive; without any it waits."""
    eligible = leading.present.eligible
    alive = tuple(broker for broker in replicas.replicas if broker in eligible)
    if not alive:
        return []
    state: LeaderAndIsr = first_leader(alive, controller_epoch=leading.epoch)
    operations = create_partition(topic, number, state)
    if PartitionStateZnode(topic, number).parent in existing:
        return operations[1:]  # From a creation that was cut off.
    return operations
