"""Which log is due for cleaning, and between which offsets."""

from dataclasses import replace

import pytest

from barnabas_broker.log.cleaner.filthiness import Bounds, LogFacts, SegmentFacts, bounds, filth

NOW = 1_000_000

LOG = LogFacts(
    segments=[
        SegmentFacts(0, 100, NOW - 900, NOW - 990),
        SegmentFacts(10, 100, NOW - 500, NOW - 890),
        SegmentFacts(20, 100, NOW - 100, NOW - 490),
        SegmentFacts(30, 100, NOW - 10, NOW - 90),
    ],
    log_start_offset=0,
    log_end_offset=35,
    last_stable_offset=35,
    cleaned_to=None,
    min_ratio=0.5,
    min_lag_ms=0,
    max_lag_ms=1 << 60,
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Bounds(0, 30, False)),
        ({"cleaned_to": 10}, Bounds(10, 30, False)),
        ({"cleaned_to": 30}, Bounds(30, 30, False)),
        ({"last_stable_offset": 17}, Bounds(0, 10, False)),
        ({"last_stable_offset": 10}, Bounds(0, 10, False)),
        ({"cleaned_to": 20, "last_stable_offset": 17}, Bounds(20, 20, False)),
        ({"min_lag_ms": 100}, Bounds(0, 30, False)),
        ({"min_lag_ms": 101}, Bounds(0, 20, False)),
        ({"min_lag_ms": 600}, Bounds(0, 10, False)),
        ({"min_lag_ms": 901}, Bounds(0, 0, False)),
        ({"log_start_offset": 5, "cleaned_to": 3}, Bounds(5, 30, True)),
        ({"cleaned_to": 36}, Bounds(0, 30, True)),
    ],
)
def test_bounds(changes: dict[str, object], expected: Bounds) -> None:
    """Never the active segment, or one with an undecided, unreplicated or too young record."""
    assert bounds(replace(LOG, **changes), NOW) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "clean", "cleanable", "due"),
    [
        ({}, 0, 300, True),
        ({"cleaned_to": 10}, 100, 200, True),
        ({"cleaned_to": 20}, 200, 100, False),
        ({"cleaned_to": 20, "min_ratio": 0.3}, 200, 100, True),
        ({"cleaned_to": 30, "min_ratio": 0.0}, 300, 0, False),
        ({"last_stable_offset": 10}, 0, 100, True),
        ({"last_stable_offset": 9}, 0, 0, False),
    ],
)
def test_the_dirty_ratio(
    changes: dict[str, object], clean: int, cleanable: int, *, due: bool
) -> None:
    """Cleanable bytes over all bytes that would be read, above the setting; whole segments."""
    found = filth(replace(LOG, **changes), NOW)  # type: ignore[arg-type]
    assert (found.clean_bytes, found.cleanable_bytes, found.due) == (clean, cleanable, due)


@pytest.mark.parametrize(("lag", "delay", "due"), [(490, 0, False), (489, 1, True), (0, 490, True)])
def test_a_log_beyond_max_compaction_lag_is_due(lag: int, delay: int, *, due: bool) -> None:
    """Beyond max.compaction.lag.ms the ratio does not matter; the oldest dirty batch counts."""
    found = filth(replace(LOG, cleaned_to=20, max_lag_ms=lag), NOW)
    assert (found.delay_ms, found.due) == (delay, due)


def test_waiting_does_not_make_nothing_due() -> None:
    """An old log of which nothing may be cleaned is left alone."""
    assert not filth(replace(LOG, cleaned_to=30, max_lag_ms=1), NOW).due
    assert not filth(replace(LOG, segments=[SegmentFacts(0, 0, -1)]), NOW).due
