"""Groups that change their protocol while members read (KIP-848, online migration).

Up: the first member of the consumer protocol that comes to a group of the classic one makes it its
own. The others stay as they are, with what they read, and are served in their protocol
(`classic_members`) until they come back in the new one. Down: when the last member of the consumer
protocol has gone and classic ones are left, the group is theirs again, and rebalances.

As Kafka's `GroupMetadataManager.convertToConsumerGroup` and `convertToClassicGroup`, with the same
records in the same order.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.group.consumer import fencing
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.member import (
    NOTHING,
    ClassicTerms,
    ConsumerMember,
)
from barnabas_broker.coordinator.group.consumer.records import (
    ConsumerRecord,
    Partitions,
    by_topic,
    epoch_record,
)
from barnabas_broker.coordinator.group.consumer.subscriptions import seen, topics_record
from barnabas_broker.coordinator.group.consumer.target import target_epoch_record, target_record
from barnabas_broker.coordinator.group.group import CONSUMERS, Group
from barnabas_broker.coordinator.group.limits import Limits
from barnabas_broker.coordinator.group.members import Client, Member
from barnabas_broker.coordinator.group.records import GroupRecord, Record
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.consumer_protocol import (
    Subscription,
    TopicPartitions,
    read_assignment,
    read_subscription,
    write_assignment,
)

# --- up


def check_upgrade(group: Group, limits: Limits) -> None:
    """Raise KafkaError GROUP_ID_NOT_FOUND where a classic group with members stays one."""
    allowed = limits.consumers.upgrades and group.protocol_type == CONSUMERS
    if not allowed or len(group.members) > limits.consumers.members_max:
        raise _not_found(f"Group {group.id} is not a consumer group.")


def upgraded(group: Group, image: MetadataImage) -> tuple[ConsumerGroup, list[Record]]:
    """What a classic group is in the consumer protocol, and the records that make it that.

    Members keep what they were assigned last, and their generation is their epoch. Where that is
    not all there is to read, or they were rebalancing, the topics are written as yet unseen, so
    that the first heartbeat computes a target. Raises KafkaError GROUP_ID_NOT_FOUND where
    a member's metadata cannot be read.
    """
    try:
        held = _held(group, image)
        members = [_taken_over(each, group, held[each.id]) for each in group.members.values()]
    except DecodeError as error:
        raise _not_found(f"Group {group.id} is not one of consumers: {error}.") from error
    records: list[ConsumerRecord] = [member.subscription_record(group.id) for member in members]
    names = frozenset[str]().union(*(member.topics for member in members))
    topics = seen(names, image)
    wanted = {(each.id, at) for each in topics.values() for at in range(each.partitions)}
    is_shared = group.state is GroupState.STABLE and wanted <= frozenset().union(*held.values())
    records.append(topics_record(group.id, topics if is_shared else {}))
    records.append(epoch_record(group.id, group.generation))
    records += [target_record(group.id, member.id, member.assigned) for member in members]
    records.append(target_epoch_record(group.id, group.generation))
    records += [member.current_record(group.id) for member in members]
    consumers = ConsumerGroup(group.id)
    for record in records:
        consumers.replay(record)
    return consumers, [GroupRecord(group.id, None), *records]


def _held(group: Group, image: MetadataImage) -> dict[str, Partitions]:
    """What each member has; nothing that another one has, which replay counts on.

    A member that missed the end of a failed rebalance may still read what it came with, unless
    another member was assigned that since.
    """
    held: dict[str, Partitions] = {}
    taken: Partitions = NOTHING
    for member in group.members.values():
        claimed = owned(read_assignment(member.assignment).assigned_partitions, image)
        held[member.id] = claimed - taken
        taken |= claimed
    if group.state is GroupState.STABLE:
        return held
    for member in group.members.values():
        if not held[member.id]:
            came_with = owned(_subscription(member, group).owned_partitions, image)
            held[member.id] = came_with - taken
            taken |= came_with
    return held


def _subscription(member: Member, group: Group) -> Subscription:
    # While the group assigns for the first time it has not settled on a protocol yet.
    chosen = [each for each in member.protocols if each[0] == group.protocol] or member.protocols
    return read_subscription(chosen[0][1])


def _taken_over(member: Member, group: Group, held: Partitions) -> ConsumerMember:
    subscription = _subscription(member, group)
    return ConsumerMember(
        id=member.id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client.client_id,
        client_host=member.client.host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=held,
        classic=ClassicTerms(member.session_timeout_ms, member.protocols),
    )


def subscription_of(metadata: bytes) -> Subscription:
    """What a joining member subscribes to; raises KafkaError INCONSISTENT_GROUP_PROTOCOL."""
    try:
        return read_subscription(metadata)
    except DecodeError as error:
        message = f"The subscription cannot be read: {error}."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message) from error


def owned(topics: Iterable[TopicPartitions], image: MetadataImage) -> Partitions:
    """Partitions that a consumer names, as far as there are such topics."""
    known = ((image.topic(each.topic), each.partitions) for each in topics)
    return frozenset(
        (topic.id, partition)
        for topic, partitions in known
        if topic is not None
        for partition in partitions
    )


# --- down


@dataclass(frozen=True, slots=True)
class Downgrade:
    """A group as it is in the classic protocol, and the records that make it that."""

    group: Group
    records: list[Record]


def may_downgrade(
    group: ConsumerGroup, gone: Collection[str], limits: Limits, *, coming: int = 0
) -> bool:
    """Whether the group is one of the classic protocol without some members, and may be."""
    left = [member for member in group.members.values() if member.id not in gone]
    size = len(left) + coming
    return (
        0 < size <= limits.members_max
        and limits.consumers.downgrades
        and all(member.classic is not None for member in left)
    )


def downgraded(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    *,
    topics: Mapping[UUID, str],
    generation: int,
    now_ms: int,
) -> Downgrade:
    """The group with these members, all of the classic protocol, and their target.

    They are named by the ids that the group knows, which one has changed that takes another's
    place. `topics` are the names by id.
    """
    classic = Group(group.id, now_ms=now_ms)
    classic.generation = generation
    for member in members.values():
        if member.classic is not None:
            classic.add(_given_back(member, member.classic), CONSUMERS)
    classic.protocol = classic.elect_protocol()
    assignments = {
        member.id: assignment_for(
            group.target.get(known, NOTHING),
            metadata=classic.members[member.id].metadata(classic.protocol),
            topics=topics,
        )
        for known, member in members.items()
    }
    renamed = {known: member.id for known, member in members.items()}
    records: list[Record] = [*fencing.group_tombstones(group, renamed)]
    return Downgrade(classic, [*records, classic.record(assignments)])


def _given_back(member: ConsumerMember, terms: ClassicTerms) -> Member:
    return Member(
        id=member.id,
        instance_id=member.instance_id,
        client=Client(member.client_id, member.client_host),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=terms.session_timeout_ms,
        protocols=terms.protocols,
    )


def assignment_for(partitions: Partitions, *, metadata: bytes, topics: Mapping[UUID, str]) -> bytes:
    """Partitions in the format that a consumer with this metadata reads."""
    named = [
        TopicPartitions(topic=topics[each.topic_id], partitions=each.partitions)
        for each in by_topic(partitions)
        if each.topic_id in topics
    ]
    return write_assignment(named, metadata=metadata)


def _not_found(message: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
