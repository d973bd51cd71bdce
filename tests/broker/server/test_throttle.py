"""A rate held over time."""

import math

from barnabas_broker.server.throttle import Throttle


def test_pauses_make_up_for_what_went_through() -> None:
    """3000 bytes at 1000 a second take three seconds, however they are asked about."""
    throttle = Throttle()
    throttle.took(3000)
    assert throttle.pause_s(100.0, 1000) == 0  # Nothing is known of the time before.
    throttle.took(3000)
    assert throttle.pause_s(100.0, 1000) == 3
    assert throttle.pause_s(101.0, 1000) == 2
    assert throttle.pause_s(104.0, 1000) == 0


def test_idle_time_is_not_saved_up() -> None:
    """After an hour of nothing the rate is the rate."""
    throttle = Throttle()
    assert throttle.pause_s(0.0, 1000) == 0
    assert throttle.pause_s(3600.0, 1000) == 0
    throttle.took(2000)
    assert throttle.pause_s(3600.0, 1000) == 2


def test_a_new_rate_counts_at_once() -> None:
    """What is left of a pause shrinks with it; a rate of 0 lets nothing through."""
    throttle = Throttle()
    throttle.pause_s(10.0, 1)
    throttle.took(1000)
    assert throttle.pause_s(10.0, 1) == 1000
    assert throttle.pause_s(10.0, 1000) == 1
    assert throttle.pause_s(10.0, 0) == math.inf
    assert Throttle().pause_s(0.0, 0) == math.inf
