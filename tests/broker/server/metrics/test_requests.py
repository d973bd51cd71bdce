"""Counts of requests by version, and of errors."""

from barnabas_broker.server.metrics.requests import RequestMetrics
from barnabas_kafka.errors import ErrorCode


def test_requests_are_counted_by_version_and_timed() -> None:
    """Each request is in the count of its version, and its time among the times of its API."""
    metrics = RequestMetrics()
    fetches = metrics.of("Fetch")
    fetches.served(12, 1_500_000)
    fetches.served(12, 500_000)
    fetches.served(4, 1_000_000)
    assert metrics.of("Fetch").versions == {12: 2, 4: 1}
    assert (fetches.times.count, fetches.times.sum) == (3, 3_000)


def test_requests_that_were_served_together_count_each() -> None:
    """They took the same time, and had the same version."""
    metrics = RequestMetrics().of("Produce")
    metrics.served(9, 2_000_000, requests=3)
    assert metrics.versions == {9: 3}
    assert (metrics.times.count, metrics.times.sum) == (3, 6_000)
    assert metrics.times.quantiles(0.1, 1.0) == [metrics.times.quantiles(1.0)[0]] * 2


def test_errors_are_counted_by_code() -> None:
    """A dashboard can tell a full disk from a wrong leader."""
    produces = RequestMetrics().of("Produce")
    produces.failed(ErrorCode.KAFKA_STORAGE_ERROR)
    produces.failed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    produces.failed(ErrorCode.KAFKA_STORAGE_ERROR)
    assert produces.errors == {
        ErrorCode.KAFKA_STORAGE_ERROR: 2,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: 1,
    }
