"""The target assignment, which all members reconcile to."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from barnabas_broker.coordinator.group.consumer.assignors import ASSIGNORS
from barnabas_broker.coordinator.group.consumer.group import SeenTopic
from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import (
    ConsumerRecord,
    Kind,
    Partitions,
    by_topic,
)
from barnabas_kafka.protocol.embedded_consumers import (
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)


def elected_assignor(members: Iterable[ConsumerMember], offered: Sequence[str]) -> str:
    """The assignor most members ask for, the first offered where none asks."""
    votes = Counter(member.assignor for member in members if member.assignor in offered)
    return max(offered, key=lambda name: votes[name])


def target(
    wanted: Mapping[str, frozenset[str]],
    topics: Mapping[str, SeenTopic],
    before: Mapping[str, Partitions],
    *,
    assignor: str,
) -> dict[str, Partitions]:
    """The new target: topic names wanted by member, the topics there are, and the old target.

    A topic that was deleted and made again is another one, for its id is.
    """
    ids = {
        names: frozenset(topics[name].id for name in names if name in topics)
        for names in set(wanted.values())
    }
    subscriptions = {member: ids[names] for member, names in wanted.items()}
    counts = {topic.id: topic.partitions for topic in topics.values()}
    return ASSIGNORS[assignor](subscriptions, counts, before)


def target_records(
    group_id: str, before: Mapping[str, Partitions], after: Mapping[str, Partitions], epoch: int
) -> list[ConsumerRecord]:
    """What changed for each member, and then the epoch that makes it count."""
    records = [
        target_record(group_id, member, after[member])
        for member in sorted(after)
        if before.get(member) != after[member]
    ]
    return [*records, target_epoch_record(group_id, epoch)]


def target_epoch_record(group_id: str, epoch: int) -> ConsumerRecord:
    """The group's epoch that the targets are for."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch)
    return ConsumerRecord(group_id, Kind.TARGET_EPOCH, "", value)


def target_record(group_id: str, member_id: str, partitions: Partitions) -> ConsumerRecord:
    """The target of one member."""
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=by_topic(partitions))
    return ConsumerRecord(group_id, Kind.TARGET, member_id, value)
