"""Which segments go, and why."""

from barnabas_broker.log.retention import Limits, Reason, SegmentAge, pick

NOW = 10_000
THREE = [SegmentAge(0, 100, 1000), SegmentAge(10, 100, 5000), SegmentAge(20, 50, 9000)]


def limits(
    *, start: int = 0, end: int = 25, mark: int = 25, ms: int = -1, size: int = -1
) -> Limits:
    return Limits(
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=mark,
        retention_ms=ms,
        retention_bytes=size,
    )


def test_without_limits_everything_stays() -> None:
    """-1 means no limit."""
    assert pick(THREE, limits(), NOW) == []


def test_time_takes_the_oldest_first() -> None:
    """A segment goes when its youngest record is older than retention.ms."""
    assert pick(THREE, limits(ms=4999), NOW) == [(0, Reason.TIME), (10, Reason.TIME)]
    assert pick(THREE, limits(ms=5000), NOW) == [(0, Reason.TIME)]


def test_a_young_segment_shields_those_behind_it() -> None:
    """Deletion never makes a hole."""
    segments = [SegmentAge(0, 1, 9999), SegmentAge(10, 1, 1), SegmentAge(20, 1, 9999)]
    assert pick(segments, limits(ms=5000), NOW) == []


def test_size_leaves_at_least_the_limit() -> None:
    """A segment goes only if the log still has retention.bytes without it."""
    assert pick(THREE, limits(size=150), NOW) == [(0, Reason.SIZE)]
    assert pick(THREE, limits(size=151), NOW) == []
    assert pick(THREE, limits(size=50), NOW) == [(0, Reason.SIZE), (10, Reason.SIZE)]


def test_the_start_offset_frees_whole_segments() -> None:
    """DeleteRecords moves the start; a segment goes once it lies wholly below."""
    assert pick(THREE, limits(start=19), NOW) == [(0, Reason.START_OFFSET)]
    assert pick(THREE, limits(start=20), NOW) == [
        (0, Reason.START_OFFSET),
        (10, Reason.START_OFFSET),
    ]


def test_rules_are_asked_in_turn() -> None:
    """What one rule has taken no longer counts for the next."""
    assert pick(THREE, limits(start=10, size=50, ms=500), NOW) == [
        (0, Reason.START_OFFSET),
        (10, Reason.SIZE),
        (20, Reason.TIME),
    ]


def test_nothing_goes_above_the_high_watermark() -> None:
    """The log start offset must not pass it."""
    assert pick(THREE, limits(ms=1, mark=19), NOW) == [(0, Reason.TIME)]


def test_the_active_segment_goes_when_it_is_old() -> None:
    """A quiet topic is emptied; the log rolls first."""
    assert len(pick(THREE, limits(ms=1), NOW)) == 3


def test_an_empty_active_segment_stays() -> None:
    """There is nothing in it to delete."""
    segments = [SegmentAge(0, 10, 1), SegmentAge(10, 0, 1)]
    assert pick(segments, limits(end=10, mark=10, ms=1), NOW) == [(0, Reason.TIME)]
