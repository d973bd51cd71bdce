"""A group: votes, subscriptions, and the places of static members."""

import pytest

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.members import Client, Member
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.group.stories import subscription


def group_of(*choices: tuple[str, ...], metadata: bytes = b"") -> Group:
    """Members m0, m1, … that support these protocols."""
    group = Group("g", now_ms=0)
    for number, names in enumerate(choices):
        member = Member(
            id=f"m{number}",
            instance_id=f"i{number}",
            client=Client("c", "/h"),
            rebalance_timeout_ms=1000 + number,
            session_timeout_ms=1000,
            protocols=tuple((name, metadata) for name in names),
        )
        group.add(member, "consumer")
    return group


def test_the_protocol_with_most_votes_wins() -> None:
    """Among those that everybody supports; a vote is the first of those in a member's list."""
    assert group_of(("a", "b"), ("b", "a"), ("b", "a")).elect_protocol() == "b"
    assert group_of(("c", "a", "b"), ("b", "a")).elect_protocol() == "a"
    assert group_of(("a", "b"), ("b", "a")).elect_protocol() == "a"


def test_the_slowest_member_sets_the_rebalance_timeout() -> None:
    """Everybody waits for it."""
    assert group_of(("a",), ("a",)).rebalance_timeout_ms == 1001


def test_somebody_leads_wherever_there_are_members() -> None:
    """The first to come, then the next."""
    group = group_of(("a",), ("a",))
    assert group.leader_id == "m0"
    group.remove("m0")
    assert group.leader_id == "m1"
    group.remove("m1")
    assert group.leader_id is None


def test_a_place_goes_to_the_next_incarnation() -> None:
    """Leadership goes with it."""
    group = group_of(("a",))
    group.replace_static("m0", "new")
    assert group.leader_id == "new"
    assert group.check_member("m0", "i0") is ErrorCode.FENCED_INSTANCE_ID
    assert group.check_member("new", "i9") is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_member("new", "i0") is None


def test_subscriptions_are_read_from_consumers_metadata() -> None:
    """None where the broker cannot tell."""
    group = group_of(("a",), metadata=subscription("x", "y"))
    group.protocol = "a"
    assert group.subscriptions() == frozenset("xy")
    group.protocol_type = "connect"
    assert group.subscriptions() is None


def test_only_states_that_may_follow_are_entered() -> None:
    """A leap would mean that a step was forgotten."""
    with pytest.raises(AssertionError):
        Group("g", now_ms=0).become(GroupState.STABLE, 1)
