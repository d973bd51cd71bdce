"""Changes of partitions' states: as those of the next image, and as the writes for them.

A partition's state is written by the version of its znode that the decision went by. The replicas
of all partitions of a topic are in one znode, so that a topic with partitions that move is written
as a whole, and any other partition by itself.
"""

from collections.abc import Mapping
from dataclasses import replace

from barnabas_broker.cluster.image import MetadataImage, PartitionState
from barnabas_broker.controller.offline_replicas import Offline
from barnabas_broker.controller.topic_znodes import place_topic
from barnabas_broker.invariants import violated
from barnabas_broker.zk.operations import Operation, SetData
from barnabas_broker.zk.znodes import LeaderAndIsr, PartitionStateZnode, ReplicaAssignment
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition

Changes = Mapping[TopicPartition, LeaderAndIsr]

Placed = Mapping[TopicPartition, ReplicaAssignment]
"""Partitions that get other replicas."""

Refused = dict[TopicPartition, KafkaError]
"""Partitions whose changes were not made, and why."""

Group = TopicPartition | str
"""What is written or refused together: a partition, or all changes of a topic, by its name."""


def write_groups(
    image: MetadataImage, changes: Changes, placed: Placed
) -> dict[Group, list[Operation]]:
    """The operations of each group."""
    moved = {tp.topic for tp in placed}
    groups: dict[Group, list[Operation]] = {}
    for tp, state in changes.items():
        znode = PartitionStateZnode(tp.topic, tp.partition)
        version = image.topics[tp.topic].partitions[tp.partition].partition_epoch
        group: Group = tp.topic if tp.topic in moved else tp
        groups.setdefault(group, []).append(SetData(znode.path, znode.encode(state), version))
    if moved:
        states = changed_states(image, {tp: changes[tp] for tp in placed}, placed, {})
        after = image.with_partitions(states)
        for name in moved:
            groups[name].append(place_topic(after.topics[name]))
    return groups


def by_partition(refused: Mapping[Group, KafkaError], changes: Changes) -> Refused:
    """The partitions whose changes were in groups that were refused."""
    errors = {tp: refused.get(tp) or refused.get(tp.topic) for tp in changes} if refused else {}
    return {tp: error for tp, error in errors.items() if error is not None}


def changed_states(
    image: MetadataImage, changes: Changes, placed: Placed, offline: Offline
) -> dict[TopicPartition, PartitionState]:
    """The partitions of an image that change, as they are afterwards."""
    changed: dict[TopicPartition, PartitionState] = {}
    for tp, state in changes.items():
        before = image.topics[tp.topic].partitions[tp.partition]
        changed[tp] = _changed(before, state, placed.get(tp))
    for tp, unusable in offline.items():
        before = changed.get(tp) or image.topics[tp.topic].partitions[tp.partition]
        changed[tp] = replace(before, offline=tuple(sorted(unusable)))
    return changed


def _changed(
    before: PartitionState, state: LeaderAndIsr, assignment: ReplicaAssignment | None
) -> PartitionState:
    assert state.leader_epoch >= before.leader_epoch, violated("leader epochs only grow")
    after = replace(
        before,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        controller_epoch=state.controller_epoch,
        recovering=state.recovering,
        partition_epoch=before.partition_epoch + 1,
    )
    if assignment is None:
        return after
    return replace(
        after,
        replicas=assignment.replicas,
        adding=assignment.adding,
        removing=assignment.removing,
    )
