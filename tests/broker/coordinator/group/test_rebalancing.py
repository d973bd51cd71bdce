"""The course of rebalances, with a clock that only the test moves."""

from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.group.scenarios import REBALANCE_MS, SESSION_MS, Scenario


def test_a_new_member_triggers_a_rebalance() -> None:
    """Nobody is answered before all have come; then the leader hears of everybody."""
    scenario = Scenario()
    (first,) = scenario.stable("a")
    second, waiting = scenario.enter("b")
    assert scenario.answer(waiting) is None
    assert scenario.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    leading = scenario.answer(scenario.join("a", first))
    assert leading.generation_id == scenario.answer(waiting).generation_id == 2
    assert [member.member_id for member in leading.members] == [first, second]
    assert scenario.answer(waiting).members == []


def test_members_that_miss_the_rebalance_timeout_are_removed() -> None:
    """At the rebalance timeout the generation is made of those who joined."""
    scenario = Scenario()
    (first,) = scenario.stable("a", session_timeout_ms=60_000)
    second, waiting = scenario.enter("b")
    scenario.pass_time(REBALANCE_MS - 1)
    assert scenario.answer(waiting) is None
    scenario.pass_time(1)
    assert scenario.answer(waiting).leader == second
    assert scenario.heartbeat(first) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_dropped_after_its_session() -> None:
    """Heartbeats prolong it; without one the others rebalance."""
    scenario = Scenario()
    first, second = scenario.stable("a", "b")
    for _ in range(3):
        scenario.pass_time(SESSION_MS - 1)
        assert scenario.heartbeat(first) is ErrorCode.NONE
        assert scenario.heartbeat(second) is ErrorCode.NONE
    scenario.pass_time(SESSION_MS - 1)
    scenario.heartbeat(first)
    scenario.pass_time(1)
    assert scenario.state == "PreparingRebalance"
    assert scenario.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scenario.answer(scenario.join("a", first)).generation_id == 3


def test_the_last_one_to_go_leaves_an_empty_group() -> None:
    """Which is written down, with the time since when."""
    scenario = Scenario()
    scenario.stable("a")
    scenario.pass_time(SESSION_MS)
    assert (scenario.state, scenario.group.generation) == ("Empty", 2)
    written = scenario.written[-1].metadata  # type: ignore[union-attr]
    assert written is not None
    assert written.members == []
    assert written.current_state_timestamp == scenario.now_ms


def test_a_member_that_waits_is_not_expected_to_speak() -> None:
    """A parked join outlasts the session; a first one at most five minutes."""
    scenario = Scenario()
    first = scenario.answer(scenario.join("a", version=3, rebalance_timeout_ms=900_000)).member_id
    scenario.sync(first)
    scenario.join("b", version=3, rebalance_timeout_ms=900_000)
    for _ in range(40):
        scenario.pass_time(SESSION_MS - 1)
        scenario.heartbeat(first)
    assert len(scenario.group.members) == 1


def test_an_empty_group_waits_for_more() -> None:
    """Each newcomer prolongs the first rebalance by the delay, up to the rebalance timeout."""
    scenario = Scenario(initial_delay_ms=3000)
    first = scenario.join("a", version=3, rebalance_timeout_ms=8000)
    scenario.pass_time(2000)
    second = scenario.join("b", version=3, rebalance_timeout_ms=8000)
    scenario.pass_time(1000)  # 3000: prolonged to 6000
    assert scenario.answer(first) is None
    third = scenario.join("c", version=3, rebalance_timeout_ms=8000)
    scenario.pass_time(3000)  # 6000: prolonged to 8000, the end
    scenario.join("d", version=3, rebalance_timeout_ms=8000)
    scenario.pass_time(1999)
    assert scenario.answer(second) is None
    scenario.pass_time(1)
    assert {scenario.answer(each).generation_id for each in (first, second, third)} == {1}
    assert len(scenario.answer(first).members) == 4


def test_a_leader_that_dies_between_join_and_sync_is_replaced() -> None:
    """Its followers are told to join again when its session is over."""
    scenario = Scenario()
    leader, follower = scenario.stable("a", "b")
    scenario.join("a", leader)
    scenario.join("b", follower)
    assert scenario.state == "CompletingRebalance"
    parked = scenario.sync(follower)
    scenario.pass_time(SESSION_MS)
    assert scenario.error(parked) is ErrorCode.REBALANCE_IN_PROGRESS
    again = scenario.answer(scenario.join("b", follower))
    assert (again.leader, len(again.members)) == (follower, 1)


def test_members_that_never_sync_are_dropped() -> None:
    """Heartbeats alone do not keep a member that never asks for its assignment."""
    scenario = Scenario()
    leader, lazy = scenario.stable("a", "b")
    scenario.join("a", leader)
    scenario.join("b", lazy)
    scenario.sync(leader)
    for _ in range(6):
        scenario.pass_time(REBALANCE_MS // 6)
        scenario.heartbeat(leader)
        scenario.heartbeat(lazy)
    assert scenario.state == "PreparingRebalance"
    assert list(scenario.group.members) == [leader]


def test_static_members_keep_their_place_over_a_rebalance() -> None:
    """One that does not come is not dropped before its session is over."""
    scenario = Scenario()
    scenario.join("a", instance="one", session_timeout_ms=60_000)
    scenario.sync("one-1")
    other = scenario.join("b", version=3)
    scenario.pass_time(REBALANCE_MS)
    assert len(scenario.answer(other).members) == 2
    assert scenario.answer(other).leader == "b-2"


def test_waiting_clients_are_sent_away_on_resignation() -> None:
    """Joins and syncs are answered at once: their coordinator is elsewhere."""
    scenario = Scenario()
    scenario.stable("a")
    _, waiting = scenario.enter("b")
    scenario.perform(scenario.shard.resign(scenario.now_ms))
    assert scenario.error(waiting) is ErrorCode.NOT_COORDINATOR
    assert scenario.shard.groups == {}
