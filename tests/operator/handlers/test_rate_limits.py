"""Rate limits by key."""

from __future__ import annotations

from barnabas_operator.handlers.rate_limits import RateLimit


def test_a_burst_and_then_one_in_each_interval() -> None:
    """Each key has a bucket of its own."""
    now = 0.0
    limit = RateLimit(10.0, burst=2, clock=lambda: now)
    assert [limit.allows("a") for _ in range(3)] == [True, True, False]
    assert limit.allows("b")
    now = 9.0
    assert not limit.allows("a")
    now = 11.0
    assert [limit.allows("a") for _ in range(2)] == [True, False]


def test_keys_are_bounded() -> None:
    """The longest unused is forgotten."""
    limit = RateLimit(10.0, keys=2, clock=lambda: 0.0)
    assert [limit.allows(key) for key in "abc"] == [True, True, True]
    assert [limit.allows(key) for key in "cb"] == [False, False]
    assert limit.allows("a")
