"""The course of rebalances, with a clock that only the test moves."""

from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.group.stories import REBALANCE_MS, SESSION_MS, Story


def test_a_new_member_triggers_a_rebalance() -> None:
    """Nobody is answered before all have come; then the leader hears of everybody."""
    story = Story()
    (first,) = story.stable("a")
    second, waiting = story.enter("b")
    assert story.answer(waiting) is None
    assert story.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    leading = story.answer(story.join("a", first))
    assert leading.generation_id == story.answer(waiting).generation_id == 2
    assert [member.member_id for member in leading.members] == [first, second]
    assert story.answer(waiting).members == []


def test_members_that_miss_the_rebalance_timeout_are_removed() -> None:
    """At the rebalance timeout the generation is made of those who joined."""
    story = Story()
    (first,) = story.stable("a", session_timeout_ms=60_000)
    second, waiting = story.enter("b")
    story.pass_time(REBALANCE_MS - 1)
    assert story.answer(waiting) is None
    story.pass_time(1)
    assert story.answer(waiting).leader == second
    assert story.heartbeat(first) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_dropped_after_its_session() -> None:
    """Heartbeats prolong it; without one the others rebalance."""
    story = Story()
    first, second = story.stable("a", "b")
    for _ in range(3):
        story.pass_time(SESSION_MS - 1)
        assert story.heartbeat(first) is ErrorCode.NONE
        assert story.heartbeat(second) is ErrorCode.NONE
    story.pass_time(SESSION_MS - 1)
    story.heartbeat(first)
    story.pass_time(1)
    assert story.state == "PreparingRebalance"
    assert story.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID
    assert story.answer(story.join("a", first)).generation_id == 3


def test_the_last_one_to_go_leaves_an_empty_group() -> None:
    """Which is written down, with the time since when."""
    story = Story()
    story.stable("a")
    story.pass_time(SESSION_MS)
    assert (story.state, story.group.generation) == ("Empty", 2)
    written = story.written[-1].metadata  # type: ignore[union-attr]
    assert written is not None
    assert written.members == []
    assert written.current_state_timestamp == story.now_ms


def test_a_member_that_waits_is_not_expected_to_speak() -> None:
    """A parked join outlasts the session; a first one at most five minutes."""
    story = Story()
    first = story.answer(story.join("a", version=3, rebalance_timeout_ms=900_000)).member_id
    story.sync(first)
    story.join("b", version=3, rebalance_timeout_ms=900_000)
    for _ in range(40):
        story.pass_time(SESSION_MS - 1)
        story.heartbeat(first)
    assert len(story.group.members) == 1


def test_an_empty_group_waits_for_more() -> None:
    """Each newcomer prolongs the first rebalance by the delay, up to the rebalance timeout."""
    story = Story(initial_delay_ms=3000)
    first = story.join("a", version=3, rebalance_timeout_ms=8000)
    story.pass_time(2000)
    second = story.join("b", version=3, rebalance_timeout_ms=8000)
    story.pass_time(1000)  # 3000: prolonged to 6000
    assert story.answer(first) is None
    third = story.join("c", version=3, rebalance_timeout_ms=8000)
    story.pass_time(3000)  # 6000: prolonged to 8000, the end
    story.join("d", version=3, rebalance_timeout_ms=8000)
    story.pass_time(1999)
    assert story.answer(second) is None
    story.pass_time(1)
    assert {story.answer(each).generation_id for each in (first, second, third)} == {1}
    assert len(story.answer(first).members) == 4


def test_a_leader_that_dies_between_join_and_sync_is_replaced() -> None:
    """Its followers are told to join again when its session is over."""
    story = Story()
    leader, follower = story.stable("a", "b")
    story.join("a", leader)
    story.join("b", follower)
    assert story.state == "CompletingRebalance"
    parked = story.sync(follower)
    story.pass_time(SESSION_MS)
    assert story.error(parked) is ErrorCode.REBALANCE_IN_PROGRESS
    again = story.answer(story.join("b", follower))
    assert (again.leader, len(again.members)) == (follower, 1)


def test_members_that_never_sync_are_dropped() -> None:
    """Heartbeats alone do not keep a member that never asks for its assignment."""
    story = Story()
    leader, lazy = story.stable("a", "b")
    story.join("a", leader)
    story.join("b", lazy)
    story.sync(leader)
    for _ in range(6):
        story.pass_time(REBALANCE_MS // 6)
        story.heartbeat(leader)
        story.heartbeat(lazy)
    assert story.state == "PreparingRebalance"
    assert list(story.group.members) == [leader]


def test_static_members_keep_their_place_over_a_rebalance() -> None:
    """One that does not come is not dropped before its session is over."""
    story = Story()
    story.join("a", instance="one", session_timeout_ms=60_000)
    story.sync("one-1")
    other = story.join("b", version=3)
    story.pass_time(REBALANCE_MS)
    assert len(story.answer(other).members) == 2
    assert story.answer(other).leader == "b-2"


def test_waiting_clients_are_sent_away_on_resignation() -> None:
    """Joins and syncs are answered at once: their coordinator is elsewhere."""
    story = Story()
    story.stable("a")
    _, waiting = story.enter("b")
    story.perform(story.shard.resign(story.now_ms))
    assert story.error(waiting) is ErrorCode.NOT_COORDINATOR
    assert story.shard.groups == {}
