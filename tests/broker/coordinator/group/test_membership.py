"""SyncGroup, Heartbeat and LeaveGroup in every state."""

import pytest

from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.group.stories import Story


def test_followers_wait_for_the_leaders_assignment() -> None:
    """Nobody reads before it is written; whom the leader forgot gets nothing."""
    story = Story()
    leader, second, third = story.stable("a", "b", "c")
    for client, member in (("a", leader), ("b", second), ("c", third)):
        story.join(client, member)
    waiting, forgotten = story.sync(second), story.sync(third)
    assert story.answer(waiting) is None
    assert story.state == "CompletingRebalance"
    leading = story.sync(leader, assign={leader: b"1", second: b"2"})
    assert [story.answer(each).assignment for each in (leading, waiting, forgotten)] == [
        b"1",
        b"2",
        b"",
    ]
    assert story.state == "Stable"
    assert story.answer(story.sync(second)).assignment == b"2"


def test_an_assignment_that_cannot_be_written_does_not_hold() -> None:
    """All are told the error, and join again."""
    story = Story()
    leader, follower = story.stable("a", "b")
    story.join("a", leader)
    story.join("b", follower)
    waiting = story.sync(follower)
    story.fail_writes = ErrorCode.NOT_COORDINATOR
    leading = story.sync(leader)
    assert story.error(waiting) is story.error(leading) is ErrorCode.NOT_COORDINATOR
    assert story.state == "PreparingRebalance"


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_failed_write_maps_to_a_membership_error(failure: ErrorCode, told: ErrorCode) -> None:
    """Errors of the log mean nothing to a member: a consumer would give up."""
    story = Story()
    member = story.enter("a")[0]
    story.fail_writes = failure
    assert story.error(story.sync(member)) is told
    story = Story()
    story.join("a", instance="one")
    story.sync("one-1")
    story.fail_writes = failure
    assert story.error(story.join("a", instance="one")) is told


def test_sync_is_for_members_of_this_generation() -> None:
    """Others are told what is wrong with them."""
    story = Story()
    member, _ = story.enter("a")
    assert story.error(story.sync("x")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert story.error(story.sync(member, generation=7)) is ErrorCode.ILLEGAL_GENERATION
    for fields in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        refused = story.sync(member, **fields)  # type: ignore[arg-type]
        assert story.error(refused) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    story.sync(member)
    story.join("b", version=3)
    assert story.error(story.sync(member)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_report_a_rebalance() -> None:
    """Only a rebalance is news to a member of this generation."""
    story = Story()
    member, _ = story.enter("a")
    assert story.heartbeat(member) is ErrorCode.NONE  # completing
    story.sync(member)
    assert story.heartbeat(member) is ErrorCode.NONE
    assert story.heartbeat(member, generation=9) is ErrorCode.ILLEGAL_GENERATION
    assert story.heartbeat("x") is ErrorCode.UNKNOWN_MEMBER_ID
    story.enter("b")
    assert story.heartbeat(member) is ErrorCode.REBALANCE_IN_PROGRESS


def test_leaving_makes_the_others_share() -> None:
    """Whoever leaves is not waited for."""
    story = Story()
    leader, follower = story.stable("a", "b")
    assert story.leave((leader, None), ("x", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert story.answer(story.join("b", follower)).leader == follower
    assert story.leave((follower, None)) == [ErrorCode.NONE]
    assert story.state == "Empty"


def test_an_administrator_takes_static_members_out() -> None:
    """By instance id alone; with a member id both must fit."""
    story = Story()
    story.join("a", instance="one")
    assert story.leave(("wrong", "one")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert story.leave(("", "two"), ("", "one")) == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert story.state == "Empty"


def test_an_id_that_was_only_given_out_can_be_given_back() -> None:
    """A client that closes between the two steps of joining holds nobody up."""
    story = Story()
    given = story.answer(story.join("a")).member_id
    assert story.leave((given, None)) == [ErrorCode.NONE]
    assert story.shard.groups == {}
