"""Commits whose records count at once, decided and remembered without an object for every part.

What `Shard.commit` does with a request and its turn, for one that its group takes as it is: both
make the same of it, by the same rules.
"""

from barnabas_broker.coordinator.group.commits import commit_fault
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.records import CommittedOffset
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.group_values import CommittedTopic, GroupCommit


def taker(shard: Shard, commit: GroupCommit, version: int) -> Group | None:
    """The group that takes all of a commit; None if it is not known or refuses any of it."""
    group_id, _, generation, member_id, instance_id, topics = commit
    group = shard.groups.get(group_id)
    if group is None or commit_fault(group, generation, member_id, instance_id, version=version):
        return None
    longest = shard.limits.metadata_bytes_max
    for _, _, partitions in topics:
        for each in partitions:
            if len(each[4]) > longest:
                return None
    return group


def take(group: Group, topics: list[CommittedTopic], now_ms: int) -> None:
    """Make true what the records of a commit say, as their replay does."""
    offsets, pending = group.offsets, group.pending_offsets
    for name, _, partitions in topics:
        for index, offset, epoch, metadata, _ in partitions:
            partition = TopicPartition(name, index)
            offsets[partition] = CommittedOffset(offset, now_ms, metadata, epoch)
            if pending:
                pending.overtake(partition)
