"""The arithmetic of measurements."""

import math
from itertools import pairwise

import pytest

from barnabas_broker.cli.perf import measures
from barnabas_broker.cli.perf.measures import Latencies, due_s, histogram, rate


def latencies(*samples: float) -> Latencies:
    """Latencies with these samples."""
    found = Latencies()
    for sample in samples:
        found.add(sample)
    return found


def test_percentiles_are_samples() -> None:
    """The one at that fraction of the sorted samples, never behind the last."""
    found = latencies(*range(1000, 0, -1))
    assert found.percentiles() == [501, 951, 991, 1000]
    assert found.percentiles([0, 1]) == [1, 1000]
    assert latencies(7).percentiles() == [7, 7, 7, 7]


def test_nothing_measured() -> None:
    """There is no mean of nothing."""
    assert math.isnan(Latencies().mean_ms)
    assert Latencies().percentiles() == [0, 0, 0, 0]
    assert histogram([]) == []


def test_samples_are_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded; count, mean and maximum are those of all."""
    monkeypatch.setattr(measures, "SAMPLES_MAX", 100)
    found = latencies(*range(1000))
    assert (found.count, found.mean_ms, found.max_ms) == (1000, 499.5, 999)
    kept = found.samples()
    assert len(kept) <= 100
    assert {b - a for a, b in pairwise(kept)} == {kept[1] - kept[0]}
    assert found.percentiles([0.5])[0] == pytest.approx(500, abs=20)


def test_every_sample_is_in_one_bin() -> None:
    """Bins follow each other without a gap, and the last one has the greatest sample."""
    samples = sorted([0.1, 0.2, 0.2, 5.0, 80.0])
    bins = histogram(samples, bins=8)
    assert sum(each.count for each in bins) == len(samples)
    assert bins[-1].count == 1
    assert all(a.high == b.low for a, b in pairwise(bins))


@pytest.mark.parametrize("samples", [[3.0], [3.0, 3.0], [0.0, 0.0]])
def test_equal_samples_make_a_histogram(samples: list[float]) -> None:
    """Even where there is no range to divide."""
    assert sum(each.count for each in histogram(samples)) == len(samples)


def test_rates() -> None:
    """No time, no rate."""
    assert rate(10, 2) == 5
    assert rate(10, 0) == 0


def test_the_wait_that_keeps_to_a_rate() -> None:
    """None when late, none without a limit."""
    assert due_s(100, 50, 1.5) == 0.5
    assert due_s(100, 50, 2.5) == 0
    assert due_s(100, -1, 0) == 0
