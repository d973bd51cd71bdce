"""Deadlines count machine seconds: fewer than the clock's while the machine is slow or busy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.waiting import machine
from tests.waiting.machine import (
    ANSWER,
    RUN,
    Budget,
    Reading,
    measured_slowness,
    read_machine,
    seconds,
    share,
)


def readings(*runnable: float) -> Callable[[], Reading]:
    """A machine with so many threads ready to run, second by second."""
    reported: Iterator[Reading] = (
        Reading(at=float(at), runnable=threads) for at, threads in enumerate(runnable)
    )
    return lambda: next(reported)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (Reading(at=1, runnable=0), 1.0),
        (Reading(at=1, runnable=1), 1.0),
        (Reading(at=1, runnable=7), 0.25),
        (Reading(at=1, runnable=0, stolen_s=1.0), 0.5),
        (Reading(at=1, runnable=0, disk_stalled_s=0.75), 0.25),
        (Reading(at=1, runnable=7, stolen_s=1.0), 0.125),
        (Reading(at=1, runnable=10_000), 0.05),
    ],
)
def test_share_of_a_processor(now: Reading, expected: float) -> None:
    """Two processors are shared with what is ready to run; theft and disks take their part."""
    assert share(Reading(at=0, runnable=0), now, processors=2) == pytest.approx(expected)


def test_an_idle_machine_spends_a_budget_by_the_clock() -> None:
    """With nothing else to do, ten machine seconds last ten seconds."""
    budget = Budget(10, read=readings(0, 0, 0), processors=2, slowness=1)
    assert budget.left() == pytest.approx(9)
    assert budget.left() == pytest.approx(8)
    assert budget.available == pytest.approx(1)


def test_a_busy_machine_spends_a_budget_more_slowly() -> None:
    """While seven other threads want the two processors, a second counts for a quarter."""
    budget = Budget(10, read=readings(0, 7, 7, 0, 0), processors=2, slowness=1)
    spent = [10 - budget.left() for _ in range(4)]
    assert spent == pytest.approx([0.25, 0.5, 0.75, 1.75])
    assert budget.available == pytest.approx(1.75 / 4)


def test_a_slow_machine_spends_a_budget_more_slowly() -> None:
    """A machine of a third of the speed gets three times as long, and was free all the while."""
    budget = Budget(10, read=readings(0, 0), processors=2, slowness=3)
    assert budget.left() == pytest.approx(10 - 1 / 3)
    assert budget.available == pytest.approx(1)


def test_this_machine_can_be_read() -> None:
    """Here and now: counters do not run backwards, and limits only grow."""
    first, second = read_machine(), read_machine()
    assert second.at >= first.at
    assert second.stolen_s >= first.stolen_s >= 0
    assert second.disk_stalled_s >= first.disk_stalled_s >= 0
    assert measured_slowness() >= 1
    assert seconds(ANSWER) >= ANSWER


def test_no_limit_is_longer_than_libraries_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a crowded machine: librdkafka refuses more than an hour."""
    crowded = Reading(at=0.0, runnable=1000.0)
    monkeypatch.setattr(machine, "read_machine", lambda: crowded)
    assert seconds(RUN) <= 3600
    assert seconds(2 * 3600) == 2 * 3600
