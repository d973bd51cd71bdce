"""Fencing of members by id, instance id and epoch, and the tombstones of a member or group."""

from collections.abc import Iterable, Mapping

from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, Kind, Partitions
from barnabas_kafka.errors import ErrorCode, KafkaError


def unknown(member_id: str, group_id: str) -> KafkaError:
    """The refusal of a client that is no member of the group, or no longer."""
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
    )


def static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The member with an instance id; raises UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    known = group.static.get(instance_id)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by "
            f"member {known}.",
        )
    return group.members[known]


def check_epoch(member: ConsumerMember, epoch: int, owned: Partitions | None) -> None:
    """Raise FENCED_MEMBER_EPOCH where a member is not where the group knows it to be.

    One that did not receive its newest epoch may still send the one before, if it reads nothing
    but what it was assigned.
    """
    if epoch > member.epoch:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a greater member epoch ({epoch}) than the one known "
            f"by the group coordinator ({member.epoch}). The member must abandon all its "
            "partitions and rejoin.",
        )
    lags = epoch < member.epoch
    if lags and (epoch != member.previous_epoch or owned is None or owned - member.assigned):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a smaller member epoch ({epoch}) than the one known "
            f"by the group coordinator ({member.epoch}). The member must abandon all its "
            "partitions and rejoin.",
        )


def member_tombstones(group_id: str, member_id: str) -> list[ConsumerRecord]:
    """What ends a member, in the order in which Kafka writes it."""
    return [
        ConsumerRecord(group_id, kind, member_id, None)
        for kind in (Kind.CURRENT, Kind.TARGET, Kind.MEMBER)
    ]


def group_tombstones(
    group: ConsumerGroup, renamed: Mapping[str, str] | None = None
) -> list[ConsumerRecord]:
    """What ends a group, whether it has members or not, in the order in which Kafka writes it.

    `renamed` are the ids that members have by now, where they are others.
    """
    names = [(renamed or {}).get(member_id, member_id) for member_id in group.members]
    parts: list[tuple[Kind, Iterable[str]]] = [
        (Kind.CURRENT, names),
        (Kind.TARGET, names),
        (Kind.TARGET_EPOCH, [""]),
        (Kind.MEMBER, names),
        (Kind.EXPRESSION, group.expressions),
        (Kind.TOPICS, [""]),
        (Kind.GROUP, [""]),
    ]
    return [ConsumerRecord(group.id, kind, part, None) for kind, some in parts for part in some]
