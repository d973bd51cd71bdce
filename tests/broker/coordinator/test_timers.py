"""Deadlines by key."""

import random

from barnabas_broker.coordinator.timers import Timers


class Clock:
    """A clock that only tests move."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms


def test_deadlines_come_up_in_order_and_once() -> None:
    """Also those moved forward or back, and not those cancelled."""
    clock = Clock()
    timers: Timers[str] = Timers(clock)
    for key, delay in (("late", 30), ("early", 10), ("moved", 5), ("gone", 7), ("sooner", 90)):
        timers.start(key, delay)
    timers.start("moved", 40)
    timers.start("sooner", 20)
    timers.cancel("gone")
    timers.cancel("unknown")
    assert len(timers) == 4
    assert "moved" in timers
    assert "gone" not in timers
    clock.ms = 9
    assert timers.pop_due() is None
    clock.ms = 100
    assert [timers.pop_due() for _ in range(5)] == ["early", "sooner", "late", "moved", None]
    assert timers.next_ms is None


def test_timers_agree_with_a_plain_dictionary() -> None:
    """Through thousands of random changes."""
    chance = random.Random(7)
    clock = Clock()
    timers: Timers[int] = Timers(clock)
    plain: dict[int, int] = {}
    for clock.ms in range(3000):
        key = chance.randrange(20)
        if chance.random() < 0.2:
            timers.cancel(key)
            plain.pop(key, None)
        else:
            delay = chance.randrange(1, 50)
            plain[key] = clock.ms + delay
            timers.start(key, delay)
        due = set()
        while (popped := timers.pop_due()) is not None:
            due.add(popped)
        assert due == {each for each, deadline in plain.items() if deadline <= clock.ms}
        for each in due:
            del plain[each]
        if plain:
            assert timers.next_ms is not None
            assert timers.next_ms <= min(plain.values())


def test_a_cancelled_timer_is_removed_when_due() -> None:
    """Until then it may be waited for, which costs a wake-up and no more."""
    clock = Clock()
    timers: Timers[str] = Timers(clock)
    timers.start("gone", 10)
    timers.start("there", 20)
    timers.cancel("gone")
    assert timers.next_ms == 10
    clock.ms = 10
    assert timers.pop_due() is None
    assert timers.next_ms == 20
