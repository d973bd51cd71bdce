"""Throttled replication: what its rate is, and whom it withholds what from."""

import pytest

from barnabas_broker.replica.replication_quota import (
    ReplicationQuota,
    follower_holds_back,
    is_throttled,
    leader_withholds,
)


def quota(limit: int | None = None, windows: int = 3) -> ReplicationQuota:
    """Windows of a second."""
    made = ReplicationQuota(windows=windows, window_ms=1000)
    if limit is not None:
        made.limit = limit
    return made


def exceeded(limit: int = 1) -> ReplicationQuota:
    """One that has seen too much."""
    made = quota(limit)
    made.record(1000, 0)
    return made


def test_nothing_went_through() -> None:
    """Not even a rate of nothing is exceeded then."""
    assert quota().rate(5) == 0
    assert not quota(0).is_exceeded(5)


def test_a_first_window_counts_as_a_whole_one() -> None:
    """Bytes that came in a millisecond are no rate of a thousandfold."""
    measured = quota()
    measured.record(500, 10)
    assert measured.rate(10) == measured.rate(1010) == 500
    assert measured.rate(2010) == 250


def test_the_rate_is_that_since_the_oldest_window_that_counts() -> None:
    """Windows begin with the bytes that come; the oldest goes when it is over for long enough."""
    measured = quota()
    for now_ms, size in ((0, 300), (999, 300), (1000, 600), (2500, 900)):
        measured.record(size, now_ms)
    assert measured.rate(2500) == 2100 / 2.5
    assert measured.rate(2999) == 2100 / 2.999
    assert measured.rate(3000) == 1500 / 2
    assert measured.rate(4000) == 900 / 1.5
    assert measured.rate(5500) == 0


def test_a_limit_is_exceeded_above_it() -> None:
    """Just as much is allowed."""
    measured = quota(500)
    measured.record(500, 0)
    assert not measured.is_exceeded(0)
    measured.record(1, 0)
    assert measured.is_exceeded(0)
    assert not measured.is_exceeded(1500)


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [
        ((), False),
        (("*",), True),
        (("1:7", "2:8"), True),
        (("2:7",), False),
        (("1:8",), False),
        (("7:1",), False),
        (("01:007",), True),
    ],
)
def test_replicas_are_pairs_of_partition_and_broker(
    replicas: tuple[str, ...], throttled: bool
) -> None:
    """Is partition 1 on broker 7 among them?"""
    assert is_throttled(replicas, 1, 7) is throttled


def test_a_leader_throttles_out_of_sync_replicas() -> None:
    """Of throttled partitions, while the limit is exceeded."""

    def withholds(of: ReplicationQuota, *, throttled: bool = True, in_sync: bool = False) -> bool:
        return leader_withholds(of, throttled=throttled, in_sync=in_sync, now_ms=0)

    assert withholds(exceeded())
    assert not withholds(exceeded(limit=1000))
    assert not withholds(exceeded(), throttled=False)
    assert not withholds(exceeded(), in_sync=True)


def test_a_follower_holds_back_while_it_is_behind() -> None:
    """Before its first answer it does not know how far; who has caught up must stay so."""

    def holds_back(of: ReplicationQuota, *, throttled: bool = True, lag: int | None = 5) -> bool:
        return follower_holds_back(of, throttled=throttled, lag=lag, now_ms=0)

    assert holds_back(exceeded())
    assert holds_back(exceeded(), lag=None)
    assert not holds_back(exceeded(), lag=0)
    assert not holds_back(exceeded(), throttled=False)
    assert not holds_back(exceeded(limit=1000))
