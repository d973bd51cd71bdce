"""The member that a request updates, in a group of the consumer protocol; limits on new members.

The sender may be new, known, or a static member that replaces another with its instance id.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from barnabas_broker.coordinator.group.consumer import fencing
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.member import (
    ABSENT_EPOCH,
    JOINING_EPOCH,
    ConsumerMember,
)
from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord
from barnabas_kafka.errors import ErrorCode, KafkaError


@dataclass(slots=True)
class MemberUpdate:
    """The member before and now, and the id of the static member that it replaces."""

    before: ConsumerMember | None
    member: ConsumerMember
    replaced: str | None = None
    records: list[ConsumerRecord] = field(default_factory=list)

    @classmethod
    def of(cls, group: ConsumerGroup, member_id: str) -> "MemberUpdate":
        """The sender of a request, which may or may not be a member yet."""
        known = group.members.get(member_id)
        return cls(known, known or ConsumerMember(id=member_id))


def replace_static_member(
    group: ConsumerGroup, old_id: str, new_id: str, *, classic: bool = False
) -> MemberUpdate:
    """A static member that comes back under another id and takes its place.

    Raises KafkaError UNRELEASED_INSTANCE_ID where that is not free: members of the consumer
    protocol say when they leave, those of the classic one only come again.
    """
    old = group.members[old_id]
    if old.epoch != ABSENT_EPOCH and not classic and old.classic is None:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {new_id} with instance id {old.instance_id} cannot join the group "
            f"because the instance id is owned by member {old_id}.",
        )
    member = replace(old, id=new_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
    return MemberUpdate(old, member, old_id, fencing.member_tombstones(group.id, old_id))


def check_memory(
    before: ConsumerMember | None, after: ConsumerMember, has_room: Callable[[int], bool]
) -> None:
    """Raise KafkaError COORDINATOR_NOT_AVAILABLE where a broker has no memory for a member.

    Its client can do nothing about it, and tries again until others have left.
    """
    if not has_room(after.memory_bytes - (0 if before is None else before.memory_bytes)):
        message = "The groups of the broker take all the memory that they may."
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)


EXPRESSIONS_MAX = 100
"""Different expressions in a group: each is matched with every topic that comes. Members nearly
always have one, and in a roll two."""


def check_expression(group: ConsumerGroup, member: ConsumerMember) -> None:
    """Raise KafkaError GROUP_MAX_SIZE_REACHED where a group has too many expressions."""
    expressions = {each.regex for each in group.members.values() if each.regex}
    if member.regex and member.regex not in expressions and len(expressions) >= EXPRESSIONS_MAX:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The members of the group subscribe to {EXPRESSIONS_MAX} regular expressions already.",
        )


def check_room(
    group: ConsumerGroup, member_id: str, instance_id: str | None, *, members_max: int
) -> None:
    """Raise KafkaError GROUP_MAX_SIZE_REACHED where there is no room for one more."""
    comes_back = member_id in group.members or instance_id in group.static
    if len(group.members) >= members_max and not comes_back:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {members_max} members.",
        )
