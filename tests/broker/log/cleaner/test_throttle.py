"""So many bytes per second."""

from barnabas_broker.log.cleaner.throttle import Throttle


def test_pauses_make_up_for_haste() -> None:
    """On average the rate is kept; time spent otherwise counts."""
    throttle = Throttle(100, now=5.0)
    assert throttle.pause_s(50, 5.0) == 0.5
    assert throttle.pause_s(50, 5.5) == 0.5
    assert throttle.pause_s(100, 9.0) == 0.0


def test_no_limit() -> None:
    """The default rate is so large that nothing ever waits."""
    assert Throttle(1.8e308, now=0.0).pause_s(1 << 40, 0.0) == 0.0
