"""What is made of samples: percentiles, rates, a histogram. No I/O and no clock."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

PERCENTILES = (0.5, 0.95, 0.99, 0.999)
MEBIBYTE = 1 << 20
SAMPLES_MAX = 500_000


class Latencies:
    """Samples in milliseconds, thinned evenly once there are more than `SAMPLES_MAX`.

    Count, mean and maximum are those of all samples.
    """

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.max_ms = 0.0
        self._kept = array("d")
        self._stride = 1

    def add(self, milliseconds: float) -> None:
        """One more sample."""
        if self.count % self._stride == 0:
            self._kept.append(milliseconds)
            if len(self._kept) > SAMPLES_MAX:
                self._kept = self._kept[::2]
                self._stride *= 2
        self.count += 1
        self.total_ms += milliseconds
        if milliseconds > self.max_ms:
            self.max_ms = milliseconds

    @property
    def mean_ms(self) -> float:
        """NaN where there are no samples."""
        return self.total_ms / self.count if self.count else math.nan

    def percentiles(self, wanted: Sequence[float] = PERCENTILES) -> list[float]:
        """The sample at each fraction of the sorted ones, as Kafka's tool takes it; 0 if none."""
        ordered = sorted(self._kept)
        last = len(ordered) - 1
        return [ordered[min(int(each * len(ordered)), last)] if ordered else 0.0 for each in wanted]

    def samples(self) -> list[float]:
        """The samples that were kept, sorted."""
        return sorted(self._kept)


@dataclass(frozen=True, slots=True)
class Bin:
    """How many samples lie in [low, high) milliseconds."""

    low: float
    high: float
    count: int


def histogram(ordered: Sequence[float], bins: int = 16) -> list[Bin]:
    """Sorted samples in bins that grow by the same factor, for latencies have long tails."""
    if not ordered:
        return []
    first, last = max(ordered[0], 0.001), max(ordered[-1], 0.002)
    factor = max((last / first) ** (1 / bins), 1.0001)
    edges = [first * factor**index for index in range(bins)] + [math.inf]
    counts = [0] * bins
    index = 0
    for sample in ordered:
        while sample >= edges[index + 1]:
            index += 1
        counts[index] += 1
    edges[-1] = last
    return [Bin(edges[i], edges[i + 1], counts[i]) for i in range(bins)]


def rate(amount: float, seconds: float) -> float:
    """Per second; 0 where no time has passed."""
    return amount / seconds if seconds > 0 else 0.0


def due_s(sent: int, per_second: float, elapsed_s: float) -> float:
    """How long to wait so that `sent` records keep to `per_second`; 0 without a limit."""
    return max(0.0, sent / per_second - elapsed_s) if per_second > 0 else 0.0
