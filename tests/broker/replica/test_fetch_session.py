"""Fetch sessions, as the requests and answers of one client or several."""

from collections.abc import Callable
from itertools import count

import pytest

from barnabas_broker.replica.fetch_session import (
    EPOCH_MAX,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Key,
    SessionCache,
    SessionRequest,
    Target,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import ZERO_UUID

OWNER = "User:alice"


def targets(*partitions: int, offset: int = 0) -> dict[Key, Target]:
    """What a request says about some partitions of topic t."""
    return {
        ("t", partition): Target(
            topic="t",
            topic_id=ZERO_UUID,
            partition=partition,
            fetch_offset=offset,
            max_bytes=1000,
            current_leader_epoch=-1,
            last_fetched_epoch=-1,
        )
        for partition in partitions
    }


def request(session_id: int, epoch: int, *forgotten: int, owner: str = OWNER) -> SessionRequest:
    """The session part of a request that names topics, not ids."""
    return SessionRequest(session_id, epoch, owner, False, tuple(("t", p) for p in forgotten))


@pytest.fixture
def cache() -> SessionCache:
    """A cache with room for two sessions, evicted after ten seconds."""
    return SessionCache(slots=2, eviction_ms=10_000)


@pytest.fixture
def draw_id() -> Callable[[], int]:
    """Session ids 1, 2, 3 …"""
    return count(1).__next__


def test_a_fetch_without_session_leaves_nothing_behind(
    cache: SessionCache, draw_id: Callable[[], int]
) -> None:
    """Epoch -1 with id 0 asks for no session (every client before version 7, and kcat)."""
    context = cache.begin(request(0, FINAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    assert context.session_id == 0
    assert not context.incremental
    assert list(context.targets) == [("t", 0)]
    assert cache.sessions == {}


def test_an_incremental_fetch_merges_its_changes(
    cache: SessionCache, draw_id: Callable[[], int]
) -> None:
    """Partitions are added, moved on and forgotten; the rest is remembered."""
    opened = cache.begin(request(0, INITIAL_EPOCH), targets(0, 1, 2), draw_id=draw_id, now_ms=0)
    context = cache.begin(
        request(opened.session_id, 1, 1), targets(2, 3, offset=7), draw_id=draw_id, now_ms=5
    )
    assert context.incremental
    assert [(key[1], target.fetch_offset) for key, target in context.targets.items()] == [
        (0, 0),
        (2, 7),
        (3, 7),
    ]


def test_sent_state_is_kept_across_updates(cache: SessionCache, draw_id: Callable[[], int]) -> None:
    """An update of the fetch offset must not make an unchanged partition look changed."""
    opened = cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    opened.targets["t", 0].last_sent = (10, 0)
    context = cache.begin(
        request(opened.session_id, 1), targets(0, offset=10), draw_id=draw_id, now_ms=1
    )
    assert context.targets["t", 0].last_sent == (10, 0)


@pytest.mark.parametrize(
    ("session_id", "epoch", "owner", "code"),
    [
        (99, 1, OWNER, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, 2, OWNER, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, "User:mallory", ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
def test_a_wrong_session_is_refused(
    cache: SessionCache,
    draw_id: Callable[[], int],
    session_id: int,
    epoch: int,
    owner: str,
    code: ErrorCode,
) -> None:
    """Unknown ids, missed epochs and other people's sessions are errors clients recover from."""
    cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    with pytest.raises(KafkaError) as caught:
        cache.begin(request(session_id, epoch, owner=owner), {}, draw_id=draw_id, now_ms=1)
    assert caught.value.code == code


def test_a_session_of_names_takes_no_topic_ids(
    cache: SessionCache, draw_id: Callable[[], int]
) -> None:
    """A client that goes from version 12 to 13 must open another session."""
    cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    with pytest.raises(KafkaError) as caught:
        cache.begin(SessionRequest(1, 1, OWNER, True), {}, draw_id=draw_id, now_ms=1)
    assert caught.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_fetch_closes_the_session_it_names(
    cache: SessionCache, draw_id: Callable[[], int]
) -> None:
    """Epoch -1 ends a session, epoch 0 replaces it."""
    cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    replaced = cache.begin(request(1, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=1)
    assert list(cache.sessions) == [replaced.session_id] == [2]
    cache.begin(request(2, FINAL_EPOCH), targets(0), draw_id=draw_id, now_ms=2)
    assert cache.sessions == {}


@pytest.mark.parametrize("epoch", [INITIAL_EPOCH, FINAL_EPOCH])
def test_a_session_is_closed_by_its_owner_only(
    cache: SessionCache, draw_id: Callable[[], int], epoch: int
) -> None:
    """Its id can be guessed, or seen in an answer."""
    kept = cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    mallory = request(kept.session_id, epoch, owner="User:mallory")
    cache.begin(mallory, targets(0), draw_id=draw_id, now_ms=1)
    again = cache.begin(request(kept.session_id, 1), {}, draw_id=draw_id, now_ms=2)
    assert again.session_id == kept.session_id


def test_the_epoch_wraps_to_one(cache: SessionCache, draw_id: Callable[[], int]) -> None:
    """0 opens sessions, so the epoch after the greatest is 1."""
    opened = cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    assert opened.session is not None
    opened.session.epoch = EPOCH_MAX
    cache.begin(request(1, EPOCH_MAX), {}, draw_id=draw_id, now_ms=1)
    assert opened.session.epoch == 1


def test_a_full_cache_answers_without_a_session(
    cache: SessionCache, draw_id: Callable[[], int]
) -> None:
    """Memory for sessions is bounded: the third client fetches in full, as if it had asked to."""
    for _ in range(2):
        cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    context = cache.begin(request(0, INITIAL_EPOCH), targets(0, 1), draw_id=draw_id, now_ms=5_000)
    assert context.session_id == 0
    assert len(cache.sessions) == 2


def test_the_stalest_session_makes_room(cache: SessionCache, draw_id: Callable[[], int]) -> None:
    """A session that was not used for the eviction time goes first."""
    for _ in range(2):
        cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    cache.begin(request(1, 1), {}, draw_id=draw_id, now_ms=9_000)
    context = cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=10_001)
    assert context.session_id == 3
    assert sorted(cache.sessions) == [1, 3]


def test_a_larger_session_displaces_an_old_smaller_one(
    cache: SessionCache, draw_id: Callable[[], int]
) -> None:
    """Large sessions save the most, so they are kept at the cost of small ones."""
    cache.begin(request(0, INITIAL_EPOCH), targets(0), draw_id=draw_id, now_ms=0)
    cache.begin(request(0, INITIAL_EPOCH), targets(0, 1), draw_id=draw_id, now_ms=0)
    for session_id in (1, 2):
        cache.begin(request(session_id, 1), {}, draw_id=draw_id, now_ms=10_000)
    same = cache.begin(request(0, INITIAL_EPOCH), targets(5), draw_id=draw_id, now_ms=10_001)
    assert same.session_id == 0
    larger = cache.begin(
        request(0, INITIAL_EPOCH), targets(5, 6, 7), draw_id=draw_id, now_ms=10_001
    )
    assert sorted(cache.sessions) == [2, larger.session_id]


def test_a_served_partition_waits_for_its_next_turn(
    cache: SessionCache, draw_id: Callable[[], int]
) -> None:
    """Under a small response limit the first partition must not starve the others."""
    opened = cache.begin(request(0, INITIAL_EPOCH), targets(0, 1, 2), draw_id=draw_id, now_ms=0)
    assert opened.session is not None
    opened.session.move_to_end(("t", 0))
    assert [key[1] for key in opened.targets] == [1, 2, 0]


def test_partitions_of_all_sessions_are_bounded(draw_id: Callable[[], int]) -> None:
    """What would be too many is fetched without a session; one that takes its share may open."""
    cache = SessionCache(slots=4, eviction_ms=10_000, partitions_max=8)
    cache.begin(request(0, INITIAL_EPOCH), targets(*range(6)), draw_id=draw_id, now_ms=0)
    large = cache.begin(request(0, INITIAL_EPOCH), targets(*range(3)), draw_id=draw_id, now_ms=0)
    assert large.session_id == 0
    assert len(large.targets) == 3
    small = cache.begin(request(0, INITIAL_EPOCH), targets(0, 1), draw_id=draw_id, now_ms=0)
    assert small.session_id == 2


def test_a_session_that_grows_too_large_is_closed(draw_id: Callable[[], int]) -> None:
    """Its client begins anew with a full fetch; one that only goes on does not count."""
    cache = SessionCache(slots=2, eviction_ms=10_000, partitions_max=4)
    cache.begin(request(0, INITIAL_EPOCH), targets(0, 1, 2), draw_id=draw_id, now_ms=0)
    cache.begin(request(1, 1), targets(3), draw_id=draw_id, now_ms=1)
    cache.begin(request(1, 2), {}, draw_id=draw_id, now_ms=2)
    with pytest.raises(KafkaError) as caught:
        cache.begin(request(1, 3), targets(4), draw_id=draw_id, now_ms=3)
    assert caught.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not cache.sessions
