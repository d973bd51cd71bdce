"""Deadlines by key."""

import random

from barnabas_broker.coordinator.timers import Timers


def test_deadlines_come_up_in_order_and_once() -> None:
    """Also those moved forward or back, and not those cancelled."""
    timers: Timers[str] = Timers()
    for key, deadline in (("late", 30), ("early", 10), ("moved", 5), ("gone", 7), ("sooner", 90)):
        timers.set(key, deadline)
    timers.set("moved", 40)
    timers.set("sooner", 20)
    timers.cancel("gone")
    timers.cancel("unknown")
    assert len(timers) == 4
    assert timers.deadline("moved") == 40
    assert timers.pop_due(4) is None
    assert [timers.pop_due(100) for _ in range(5)] == ["early", "sooner", "late", "moved", None]
    assert timers.next_ms is None


def test_timers_agree_with_a_plain_dictionary() -> None:
    """Through thousands of random changes."""
    chance = random.Random(7)
    timers: Timers[int] = Timers()
    plain: dict[int, int] = {}
    for now_ms in range(3000):
        key = chance.randrange(20)
        if chance.random() < 0.2:
            timers.cancel(key)
            plain.pop(key, None)
        else:
            plain[key] = now_ms + chance.randrange(1, 50)
            timers.set(key, plain[key])
        due = set()
        while (popped := timers.pop_due(now_ms)) is not None:
            due.add(popped)
        assert due == {each for each, deadline in plain.items() if deadline <= now_ms}
        for each in due:
            del plain[each]
        if plain:
            assert timers.next_ms is not None
            assert timers.next_ms <= min(plain.values())
