"""How much of something there was lately: Kafka's `Rate` and `TokenBucket` (`metrics.stats`).

Times are milliseconds of one clock that never goes back. The arithmetic is Kafka's, so that a
client is throttled here for as long as there.
"""

import math
from typing import Final

INT_MAX: Final = 2**31 - 1


class Rate:
    """Amounts of the last `windows` windows of `window_ms` each, and what they are in a second.

    A window is one sample, [beginning, last amount at, sum]. One more than `windows` is kept, for
    the oldest one reaches into the time that counts.
    """

    __slots__ = ("_current", "_samples", "_window_ms", "_windows")

    def __init__(self, *, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._samples: list[list[float]] = []
        self._current = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Count an amount; a negative one takes back what was counted."""
        samples = self._samples
        if not samples:
            samples.append([now_ms, now_ms, 0.0])
        sample = samples[self._current]
        if now_ms - sample[0] >= self._window_ms:
            self._current = (self._current + 1) % (self._windows + 1)
            if self._current == len(samples):
                samples.append([now_ms, now_ms, 0.0])
            sample = samples[self._current]
            sample[:] = (now_ms, now_ms, 0.0)
        sample[1] = now_ms
        sample[2] += amount

    def measure(self, now_ms: int) -> tuple[float, int]:
        """The amount in a second, and over how many milliseconds that is measured.

        Windows that have not passed yet count as if nothing had happened in them, but for one.
        """
        samples = self._samples
        expired = now_ms - self._windows * self._window_ms
        oldest: float = now_ms
        total = 0.0
        for sample in samples:
            if sample[1] <= expired:
                sample[:] = (now_ms, now_ms, 0.0)
            else:
                total += sample[2]
                oldest = min(oldest, sample[0])
        elapsed = int(now_ms - oldest)
        missing = self._windows - 1 - elapsed // self._window_ms
        if missing > 0:
            elapsed += missing * self._window_ms
        over_ms = max(elapsed, 1)
        return total / (over_ms / 1000), over_ms


class RateSensor:
    """A rate against a limit that may change."""

    __slots__ = ("_max_throttle_ms", "_rate", "last_ms", "limit", "throttle_ms")

    def __init__(
        self, limit: float, *, windows: int, window_ms: int, max_throttle_ms: int = INT_MAX
    ) -> None:
        self.limit = limit
        self.last_ms = 0
        #: the last throttle time, 0 where the client was within the quota
        self.throttle_ms = 0
        self._rate = Rate(windows=windows, window_ms=window_ms)
        self._max_throttle_ms = max_throttle_ms

    def record(self, amount: float, now_ms: int) -> int:
        """Count an amount; returns for how many milliseconds the client must be held back."""
        self.last_ms = now_ms
        self._rate.record(amount, now_ms)
        value, over_ms = self._rate.measure(now_ms)
        limit = self.limit
        if value <= limit:
            self.throttle_ms = 0
        else:
            # Until the rate, nothing else being counted, is back at the limit. Java's arithmetic
            # overflows for limits of nothing, so that Apache's brokers do not throttle at all.
            wait_ms = (value - limit) / limit * over_ms if limit > 0 else math.inf
            longest = self._max_throttle_ms
            self.throttle_ms = longest if wait_ms >= longest else math.floor(wait_ms + 0.5)
        return self.throttle_ms

    def unrecord(self, amount: float, now_ms: int) -> None:
        """Take back an amount that was counted and did not come to pass."""
        self._rate.record(-amount, now_ms)

    def measured(self, now_ms: int) -> float:
        """The rate as it is."""
        return self._rate.measure(now_ms)[0]


class BucketSensor:
    """A bucket of tokens that fills at `limit` in a second, up to what all windows together bring.

    It may be overdrawn: what is asked for while there is anything is given, and what follows waits
    until the bucket is no longer below nothing. Used by one thread; others may change `limit`.
    """

    __slots__ = ("_filled_ms", "_seconds", "last_ms", "limit", "throttle_ms", "tokens")

    def __init__(self, limit: float, *, windows: int, window_ms: int, now_ms: int) -> None:
        self._seconds = windows * window_ms / 1000
        self._filled_ms = now_ms
        self.limit = limit
        self.last_ms = 0
        self.throttle_ms = 0
        self.tokens = limit * self._seconds

    def wait_ms(self, now_ms: int) -> int:
        """How long until the bucket is not overdrawn, 0 where it is not."""
        self._fill(now_ms)
        if self.tokens >= 0:
            self.throttle_ms = 0
        else:
            wait_ms = -self.tokens / self.limit * 1000 if self.limit > 0 else math.inf
            self.throttle_ms = INT_MAX if wait_ms >= INT_MAX else math.floor(wait_ms + 0.5)
        return self.throttle_ms

    def record(self, amount: float, now_ms: int) -> int:
        """Take tokens, there or not; returns as `wait_ms`."""
        self.last_ms = now_ms
        self._fill(now_ms)
        self.tokens = min(self.limit * self._seconds, self.tokens - amount)
        return self.wait_ms(now_ms)

    def measured(self, now_ms: int) -> float:
        """The tokens there are; changes nothing, so that any thread may ask."""
        passed_s = (now_ms - self._filled_ms) / 1000
        return min(self.limit * self._seconds, self.tokens + self.limit * passed_s)

    def _fill(self, now_ms: int) -> None:
        self.tokens = self.measured(now_ms)
        self._filled_ms = now_ms
