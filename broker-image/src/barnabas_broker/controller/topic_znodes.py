"""What each decision about topics means in znodes: lists of operations to be committed together.

The znodes are the ones that Apache's controller and brokers write for the same decision, so that
its tools see a topic or a deletion in the way they expect. What they write in several steps is one
transaction here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from barnabas_broker.cluster.image import TopicImage
from barnabas_broker.controller.elections import first_leader
from barnabas_broker.controller.stored import TopicZnodes
from barnabas_broker.zk.operations import Create, Delete, Operation, SetData
from barnabas_broker.zk.znodes import (
    ConfigZnode,
    DeleteTopicZnode,
    LeaderAndIsr,
    PartitionStateZnode,
    ReplicaAssignment,
    TopicAssignment,
    TopicZnode,
)

FirstState = tuple[tuple[int, ...], LeaderAndIsr]
"""The replicas of a new partition, and what it starts as."""


def create_topic(
    name: str,
    topic_id: UUID,
    *,
    states: Sequence[FirstState],
    config: Mapping[str, str],
    configured: bool,
) -> list[Operation]:
    """A topic with its partitions and settings; those that are `configured` have a znode already.

    They are left over; what they say is replaced.
    """
    assignment = TopicAssignment(
        topic_id, {number: ReplicaAssignment(each[0]) for number, each in enumerate(states)}
    )
    topic, settings = TopicZnode(name), ConfigZnode.for_topic(name)
    data = settings.encode(config)
    operations: list[Operation] = [
        SetData(settings.path, data) if configured else Create(settings.path, data),
        Create(topic.path, topic.encode(assignment)),
        Create(topic.partitions_path),
    ]
    for number, (_, state) in enumerate(states):
        operations += create_partition(name, number, state)
    return operations


def create_partition(topic: str, partition: int, state: LeaderAndIsr) -> list[Operation]:
    """The znodes of one partition."""
    znode = PartitionStateZnode(topic, partition)
    return [Create(znode.parent), Create(znode.path, znode.encode(state))]


def first_states(
    replicas: Iterable[tuple[int, ...]],
    *,
    controller_epoch: int,
    without: Collection[int] = (),
) -> list[FirstState]:
    """What new partitions with those replicas start as; brokers in `without` are not in sync yet.

    Unless there are no others.
    """
    states = []
    for each in replicas:
        alive = tuple(broker for broker in each if broker not in without) or each
        states.append((each, first_leader(alive, controller_epoch=controller_epoch)))
    return states


def place_topic(topic: TopicImage) -> Operation:
    """The assignment of a topic, as its image has it."""
    replicas = {
        number: ReplicaAssignment(each.replicas, each.adding, each.removing)
        for number, each in enumerate(topic.partitions)
    }
    znode = TopicZnode(topic.name)
    return SetData(znode.path, znode.encode(TopicAssignment(topic.id, replicas)))


def grow_topic(topic: TopicImage, added: Sequence[FirstState]) -> list[Operation]:
    """More partitions behind those that a topic has."""
    replicas = [
        ReplicaAssignment(each.replicas, each.adding, each.removing) for each in topic.partitions
    ]
    present = len(replicas)
    replicas += [ReplicaAssignment(each) for each, _ in added]
    znode = TopicZnode(topic.name)
    data = znode.encode(TopicAssignment(topic.id, dict(enumerate(replicas))))
    operations: list[Operation] = [SetData(znode.path, data)]
    for number, (_, state) in enumerate(added, start=present):
        operations += create_partition(topic.name, number, state)
    return operations


def delete_topic(name: str, found: TopicZnodes) -> list[Operation]:
    """Everything about a topic goes; a mark stays that says its logs are to go, too.

    The mark comes first: a deletion that is cut off between two transactions is still wished for.
    """
    operations: list[Operation] = []
    if not found.marked:
        operations.append(Create(DeleteTopicZnode(name).path))
    operations += [Delete(path) for path in found.paths]
    if found.configured:
        operations.append(Delete(ConfigZnode.for_topic(name).path))
    return operations
