"""Rates, buckets and throttle times, against the arithmetic of Kafka's classes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest

from barnabas_broker.quota.rates import INT_MAX, BucketSensor, Rate, RateSensor


@dataclass
class Sample:
    """Kafka's `SampledStat.Sample`."""

    start: int
    last: int
    value: float = 0.0


class Reference:
    """Kafka's `Rate` of a `WindowedSum`, method by method."""

    def __init__(self, windows: int, window_ms: int) -> None:
        self.windows, self.window_ms = windows, window_ms
        self.samples: list[Sample] = []
        self.current = 0

    def record(self, value: float, now: int) -> None:
        """`SampledStat.record`, and `advance`."""
        if not self.samples:
            self.samples.append(Sample(now, now))
        if now - self.samples[self.current].start >= self.window_ms:
            self.current = (self.current + 1) % (self.windows + 1)
            if self.current >= len(self.samples):
                self.samples.append(Sample(now, now))
            else:
                self.samples[self.current] = Sample(now, now)
        self.samples[self.current].value += value
        self.samples[self.current].last = now

    def purge(self, now: int) -> None:
        """`purgeObsoleteSamples`."""
        for at, sample in enumerate(self.samples):
            if now - sample.last >= self.windows * self.window_ms:
                self.samples[at] = Sample(now, now)

    def window_size(self, now: int) -> int:
        """`Rate.windowSize`."""
        self.purge(now)
        if not self.samples:
            self.samples.append(Sample(now, now))
        elapsed = now - min(each.start for each in self.samples)
        full, least = elapsed // self.window_ms, self.windows - 1
        if full < least:
            elapsed += (least - full) * self.window_ms
        return max(elapsed, 1)

    def measure(self, now: int) -> float:
        """`Rate.measure`."""
        self.purge(now)
        total = sum(each.value for each in self.samples)
        return total / (self.window_size(now) / 1000)

    def throttle_ms(self, limit: float, now: int) -> int:
        """`QuotaUtils.throttleTime` where the quota is violated, else 0."""
        value = self.measure(now)
        if value <= limit:
            return 0
        return math.floor((value - limit) / limit * self.window_size(now) + 0.5)


@pytest.mark.parametrize("seed", range(60))
def test_rates_and_throttle_times_are_kafkas(seed: int) -> None:
    """Amounts at all distances, taken back now and then, against limits of all sizes."""
    random = Random(seed)
    windows, window_ms = random.choice([(11, 1000), (2, 1000), (1, 1000), (5, 3000)])
    limit = random.choice([0.5, 10.0, 1000.0, 1e6])
    reference = Reference(windows, window_ms)
    sensor = RateSensor(limit, windows=windows, window_ms=window_ms)
    now = random.randrange(10**6)
    for _ in range(400):
        now += random.choice([0, 1, 7, 250, 999, 1000, 1001, 4000, 12_000, 40_000])
        amount = float(random.choice([0, 1, 100, 10_000, 10**7]))
        reference.record(amount, now)
        assert sensor.record(amount, now) == min(reference.throttle_ms(limit, now), INT_MAX)
        assert sensor.measured(now) == reference.measure(now)
        if random.random() < 0.2:
            reference.record(-amount, now)
            sensor.unrecord(amount, now)
            assert sensor.measured(now) == reference.measure(now)


def test_a_client_that_honours_its_throttle_time_is_within_its_quota() -> None:
    """So long is the throttle time: the amount over what has passed since is the limit."""
    sensor = RateSensor(1000, windows=11, window_ms=1000)
    assert sensor.record(20_000, 0) == 10_000
    assert sensor.measured(9_999) > 1000
    assert sensor.measured(10_000) == 2000  # As long as a window of ten seconds has it.
    assert sensor.record(0, 20_000) == 0


def test_an_unrecorded_amount_does_not_count() -> None:
    """A throttled fetch."""
    sensor = RateSensor(100, windows=11, window_ms=1000)
    assert sensor.record(50_000, 5) > 0
    sensor.unrecord(50_000, 5)
    assert sensor.record(10, 6) == 0


def test_the_longest_throttle_time() -> None:
    """Of a request quota one window; and what a response has room for, for a limit of nothing."""
    assert RateSensor(1, windows=11, window_ms=1000, max_throttle_ms=1000).record(1e6, 0) == 1000
    assert RateSensor(0, windows=11, window_ms=1000).record(1, 0) == INT_MAX
    assert RateSensor(1, windows=11, window_ms=1000).record(1e12, 0) == INT_MAX


def test_a_rate_of_nothing() -> None:
    """Before anything was counted."""
    assert Rate(windows=11, window_ms=1000).measure(5) == (0.0, 10_000)


class Bucket:
    """Kafka's `TokenBucket`, method by method."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.tokens, self.updated = seconds, 0.0, -(10**9)

    def refill(self, quota: float, now: int) -> None:
        """`refill`."""
        gained = quota * (now - self.updated) / 1000
        self.tokens = min(quota * self.seconds, self.tokens + gained)
        self.updated = now

    def record(self, value: float, quota: float, now: int) -> None:
        """`record`."""
        self.refill(quota, now)
        self.tokens = min(quota * self.seconds, self.tokens - value)


@pytest.mark.parametrize("seed", range(30))
def test_tokens_are_kafkas(seed: int) -> None:
    """The burst of all windows first, then as many as come back, and waits until none is owed."""
    random = Random(seed)
    limit = random.choice([0.5, 3.0, 100.0])
    windows, window_ms = random.choice([(11, 1000), (2, 500)])
    reference, now = Bucket(windows * window_ms / 1000), random.randrange(10**6)
    sensor = BucketSensor(limit, windows=windows, window_ms=window_ms, now_ms=now)
    for _ in range(300):
        now += random.choice([0, 1, 100, 1000, 5000, 100_000])
        amount = float(random.choice([0, 1, 5, 50, 500]))
        reference.record(amount, limit, now)
        waits = sensor.record(amount, now)
        assert sensor.tokens == pytest.approx(reference.tokens)
        assert waits == max(math.floor(-reference.tokens / limit * 1000 + 0.5), 0)


@pytest.mark.parametrize("make", [
    lambda: RateSensor(1, windows=1, window_ms=1),
    lambda: BucketSensor(1, windows=1, window_ms=1, now_ms=0),
])  # fmt: skip
def test_use_is_noted(make: Callable[[], RateSensor | BucketSensor]) -> None:
    """By which idle sensors are found."""
    sensor = make()
    sensor.record(1, 77)
    assert sensor.last_ms == 77
