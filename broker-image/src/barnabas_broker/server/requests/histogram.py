"""Times of requests, counted in buckets that grow with the time.

To count one costs a few additions and no allocation, for every request is counted. A bucket is an
eighth to a quarter wide of its time, which is how far a percentile may be off. Percentiles are of
the last one to two windows, and a window is the time between two scrapes, a minute at least;
count and sum are of the life of the process, as counters must be.
"""

from typing import Final

WINDOW_MS: Final = 60_000

_LINEAR: Final = 8
"""Below this every microsecond has a bucket of its own; from here on each doubling has four."""

_BUCKETS: Final = 4 * 40
"""Enough for 2^40 µs, twelve days; a longer time is counted as that."""


def bucket_of(microseconds: int) -> int:
    """The bucket that a time is counted in."""
    if microseconds < _LINEAR:
        return microseconds if microseconds > 0 else 0
    doublings = microseconds.bit_length() - 3
    bucket = 4 * doublings + (microseconds >> doublings)
    return bucket if bucket < _BUCKETS else _BUCKETS - 1


def middle_of(bucket: int) -> float:
    """The time in the middle of a bucket, in microseconds."""
    if bucket < _LINEAR:
        return float(bucket)
    doublings, steps = divmod(bucket - 4, 4)
    return (4 + steps + 0.5) * (1 << doublings)


class Histogram:
    """Times in microseconds."""

    __slots__ = ("_before", "_now", "_window_ends_ms", "count", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0
        self._now = [0] * _BUCKETS
        self._before = [0] * _BUCKETS
        self._window_ends_ms = 0

    def observe(self, microseconds: int, times: int = 1) -> None:
        """Count one time, of one or more."""
        self.count += times
        self.sum += microseconds * times
        self._now[bucket_of(microseconds)] += times

    def turn(self, now_ms: int) -> None:
        """Begin a new window if the present one is over; to be called before each look."""
        if now_ms < self._window_ends_ms:
            return
        self._before, self._now = self._now, [0] * _BUCKETS
        self._window_ends_ms = now_ms + WINDOW_MS

    def quantiles(self, *wanted: float) -> list[float]:
        """The times, in microseconds, that such shares of the recent ones do not exceed.

        `wanted` ascends. Without recent times all are 0, as Kafka's own metrics have it.
        """
        counts = [now + before for now, before in zip(self._now, self._before, strict=True)]
        total = sum(counts)
        if not total:
            return [0.0] * len(wanted)
        found: list[float] = []
        passed, bucket = counts[0], 0
        for share in wanted:
            while passed < share * total and bucket < _BUCKETS - 1:
                bucket += 1
                passed += counts[bucket]
            found.append(middle_of(bucket))
        return found
