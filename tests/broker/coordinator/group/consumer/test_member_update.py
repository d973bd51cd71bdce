"""Who speaks for a member of a group of the consumer protocol."""

from dataclasses import replace

import pytest

from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.member import (
    ABSENT_EPOCH,
    ClassicTerms,
    ConsumerMember,
)
from barnabas_broker.coordinator.group.consumer.member_update import (
    MemberUpdate,
    check_room,
    replace_static_member,
)
from barnabas_broker.coordinator.group.consumer.records import Kind
from barnabas_kafka.errors import ErrorCode, KafkaError

MEMBER = ConsumerMember(id="old", instance_id="i", epoch=3, previous_epoch=2)


def group_of(member: ConsumerMember) -> ConsumerGroup:
    group = ConsumerGroup("g")
    group.replay(member.subscription_record("g"))
    group.replay(member.current_record("g"))
    return group


def test_members_and_others() -> None:
    """One that is none yet begins with nothing."""
    known = MemberUpdate.of(group_of(MEMBER), "old")
    assert (known.before, known.member) == (MEMBER, MEMBER)
    unknown = MemberUpdate.of(group_of(MEMBER), "new")
    assert (unknown.before, unknown.member) == (None, ConsumerMember(id="new"))


@pytest.mark.parametrize(
    ("member", "classic", "free"),
    [
        (MEMBER, False, False),
        (replace(MEMBER, epoch=ABSENT_EPOCH), False, True),
        (MEMBER, True, True),
        (replace(MEMBER, classic=ClassicTerms(1, (("range", b""),))), False, True),
    ],
)
def test_a_place_that_is_free(member: ConsumerMember, classic: bool, free: bool) -> None:
    """Left for a while, or one of the two uses the classic protocol; the old member ends."""
    group = group_of(member)
    if not free:
        with pytest.raises(KafkaError) as refused:
            replace_static_member(group, "old", "new", classic=classic)
        assert refused.value.code is ErrorCode.UNRELEASED_INSTANCE_ID
        return
    update = replace_static_member(group, "old", "new", classic=classic)
    assert (update.replaced, update.member.id, update.member.epoch) == ("old", "new", 0)
    kinds = [(each.kind, each.part, each.value) for each in update.records]
    assert kinds == [(kind, "old", None) for kind in (Kind.CURRENT, Kind.TARGET, Kind.MEMBER)]


def test_room() -> None:
    """Who is there, or comes back to its place, needs none."""
    group = group_of(MEMBER)
    check_room(group, "old", None, members_max=1)
    check_room(group, "new", "i", members_max=1)
    with pytest.raises(KafkaError) as refused:
        check_room(group, "new", None, members_max=1)
    assert refused.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED
