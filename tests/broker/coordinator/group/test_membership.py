"""SyncGroup, Heartbeat and LeaveGroup in every state."""

import pytest

from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.group.scenarios import Scenario


def test_followers_wait_for_the_leaders_assignment() -> None:
    """Nobody reads before it is written; whom the leader forgot gets nothing."""
    scenario = Scenario()
    leader, second, third = scenario.stable("a", "b", "c")
    for client, member in (("a", leader), ("b", second), ("c", third)):
        scenario.join(client, member)
    waiting, forgotten = scenario.sync(second), scenario.sync(third)
    assert scenario.answer(waiting) is None
    assert scenario.state == "CompletingRebalance"
    leading = scenario.sync(leader, assign={leader: b"1", second: b"2"})
    assert [scenario.answer(each).assignment for each in (leading, waiting, forgotten)] == [
        b"1",
        b"2",
        b"",
    ]
    assert scenario.state == "Stable"
    assert scenario.answer(scenario.sync(second)).assignment == b"2"


def test_an_assignment_that_cannot_be_written_does_not_hold() -> None:
    """All are told the error, and join again."""
    scenario = Scenario()
    leader, follower = scenario.stable("a", "b")
    scenario.join("a", leader)
    scenario.join("b", follower)
    waiting = scenario.sync(follower)
    scenario.fail_writes = ErrorCode.NOT_COORDINATOR
    leading = scenario.sync(leader)
    assert scenario.error(waiting) is scenario.error(leading) is ErrorCode.NOT_COORDINATOR
    assert scenario.state == "PreparingRebalance"


@pytest.mark.parametrize(
    ("failure", "reported"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_failed_write_maps_to_a_membership_error(failure: ErrorCode, reported: ErrorCode) -> None:
    """Errors of the log mean nothing to a member: a consumer would give up."""
    scenario = Scenario()
    member = scenario.enter("a")[0]
    scenario.fail_writes = failure
    assert scenario.error(scenario.sync(member)) is reported
    scenario = Scenario()
    scenario.join("a", instance="one")
    scenario.sync("one-1")
    scenario.fail_writes = failure
    assert scenario.error(scenario.join("a", instance="one")) is reported


def test_sync_is_for_members_of_this_generation() -> None:
    """Others are told what is wrong with them."""
    scenario = Scenario()
    member, _ = scenario.enter("a")
    assert scenario.error(scenario.sync("x")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scenario.error(scenario.sync(member, generation=7)) is ErrorCode.ILLEGAL_GENERATION
    for fields in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        refused = scenario.sync(member, **fields)  # type: ignore[arg-type]
        assert scenario.error(refused) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    scenario.sync(member)
    scenario.join("b", version=3)
    assert scenario.error(scenario.sync(member)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_report_a_rebalance() -> None:
    """Only a rebalance is news to a member of this generation."""
    scenario = Scenario()
    member, _ = scenario.enter("a")
    assert scenario.heartbeat(member) is ErrorCode.NONE  # completing
    scenario.sync(member)
    assert scenario.heartbeat(member) is ErrorCode.NONE
    assert scenario.heartbeat(member, generation=9) is ErrorCode.ILLEGAL_GENERATION
    assert scenario.heartbeat("x") is ErrorCode.UNKNOWN_MEMBER_ID
    scenario.enter("b")
    assert scenario.heartbeat(member) is ErrorCode.REBALANCE_IN_PROGRESS


def test_leaving_makes_the_others_share() -> None:
    """Whoever leaves is not waited for."""
    scenario = Scenario()
    leader, follower = scenario.stable("a", "b")
    assert scenario.leave((leader, None), ("x", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert scenario.answer(scenario.join("b", follower)).leader == follower
    assert scenario.leave((follower, None)) == [ErrorCode.NONE]
    assert scenario.state == "Empty"


def test_an_administrator_takes_static_members_out() -> None:
    """By instance id alone; with a member id both must fit."""
    scenario = Scenario()
    scenario.join("a", instance="one")
    assert scenario.leave(("wrong", "one")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert scenario.leave(("", "two"), ("", "one")) == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert scenario.state == "Empty"


def test_an_id_that_was_only_given_out_can_be_given_back() -> None:
    """A client that closes between the two steps of joining holds nobody up."""
    scenario = Scenario()
    given = scenario.answer(scenario.join("a")).member_id
    assert scenario.leave((given, None)) == [ErrorCode.NONE]
    assert scenario.shard.groups == {}
