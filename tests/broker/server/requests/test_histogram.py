"""Times in buckets: how far off they may be, and which of them count."""

import pytest

from barnabas_broker.server.requests.histogram import WINDOW_MS, Histogram, bucket_of, middle_of


@pytest.mark.parametrize("microseconds", [0, 1, 7, 8, 9, 100, 4095, 4096, 65_537, 10**6, 2**39])
def test_a_bucket_is_near_its_times(microseconds: int) -> None:
    """The middle of a time's bucket is within a quarter of it."""
    assert middle_of(bucket_of(microseconds)) == pytest.approx(microseconds, rel=0.26)


def test_buckets_are_in_the_order_of_time() -> None:
    """A longer time never comes into an earlier bucket."""
    buckets = [bucket_of(microseconds) for microseconds in range(5000)]
    assert buckets == sorted(buckets)


def test_times_beyond_all_buckets_are_counted() -> None:
    """A time of years, and one of a clock that went back, are counted at the ends."""
    histogram = Histogram()
    histogram.observe(10**18)
    histogram.observe(-5)
    assert histogram.count == 2
    assert histogram.quantiles(0.5, 1.0)[0] == 0


def test_quantiles() -> None:
    """Of a hundred times from 1 to 100 ms, the median is near 50 ms and p99 near 99 ms."""
    histogram = Histogram()
    for milliseconds in range(1, 101):
        histogram.observe(milliseconds * 1000)
    median, late = histogram.quantiles(0.5, 0.99)
    assert median == pytest.approx(50_000, rel=0.26)
    assert late == pytest.approx(99_000, rel=0.26)
    assert histogram.count == 100
    assert histogram.sum == 5_050_000


def test_quantiles_forget_and_counts_do_not() -> None:
    """After two windows an old time is in the count only."""
    histogram = Histogram()
    histogram.observe(1_000_000)
    histogram.turn(0)
    assert histogram.quantiles(0.5)[0] == pytest.approx(1_000_000, rel=0.26)
    histogram.observe(10)
    histogram.turn(WINDOW_MS - 1)
    assert histogram.quantiles(1.0)[0] == pytest.approx(1_000_000, rel=0.26)
    histogram.turn(WINDOW_MS)
    assert histogram.quantiles(1.0)[0] == pytest.approx(10, rel=0.26)
    histogram.turn(2 * WINDOW_MS)
    assert histogram.quantiles(0.5, 1.0) == [0, 0]
    assert (histogram.count, histogram.sum) == (2, 1_000_010)
