"""The one wait of the tests: reads a fact until it holds, and reports well when it does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from tests.waiting import processes
from tests.waiting.machine import SETTLE, Budget
from tests.waiting.processes import Usage

Fact = TypeVar("Fact")

PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.25
_MUCH: Final = 0.2
"""The part of a wait that a process must have run, or been ready to run, to count as at work."""


class NotInTimeError(AssertionError):
    """A fact that did not come true in time: its last state and all evidence there is."""


class _Wait:
    """One wait that is under way: its deadline, the usage at its start, the fact's last state."""

    def __init__(self, what: str, within: float, show: Callable[[], object]) -> None:
        self.what = what
        self.budget = Budget(within)
        self.usages = processes.read_usages()
        self.last: object = None
        self.pause_s = PAUSE_S
        self._show = show

    def check(self) -> None:
        """Raise NotInTimeError once the deadline has passed."""
        if self.budget.left() < 0:
            raise NotInTimeError(self._report())
        self.pause_s = min(self.pause_s * 1.2, LONGEST_PAUSE_S)

    def _report(self) -> str:
        elapsed, available = self.budget.elapsed_s, self.budget.available
        after = processes.read_usages()
        verdict = judge(elapsed, available, self.usages, after)
        shown = self._show()
        return (
            f"not in time: {self.what}\n"
            f"last state: {self.last!r}\n"
            f"{shown}\n"
            f"waited {elapsed:.1f} s for {self.budget.units:g} machine seconds; the machine is "
            f"{self.budget.slowness:.1f} times slower than the reference, and {available:.0%} of "
            f"it was available\n"
            f"{verdict}\n"
            f"{processes.report(self.usages)}"
        )


def wait_for(
    what: str,
    read: Callable[[], Fact],
    *,
    until: Callable[[Fact], object] = bool,
    within: float = SETTLE,
    retry: tuple[type[Exception], ...] = (),
    show: Callable[[], object] = str,
) -> Fact:
    """What `read` returns, once `until` holds for it (once it is true, by default).

    `what` names the fact in the error. `within` is in machine seconds: ANSWER, START, SETTLE or
    RUN. An exception of `retry` is a state in which the fact does not hold yet; others pass
    through. `show()` adds to the error what else is known. Raises NotInTimeError.
    """
    wait = _Wait(what, within, show)
    while True:
        try:
            wait.last = found = read()
            if until(found):
                return found
        except retry as error:
            wait.last = error
        wait.check()
        time.sleep(wait.pause_s)


async def wait_for_async(
    what: str,
    read: Callable[[], Fact],
    *,
    until: Callable[[Fact], object] = bool,
    within: float = SETTLE,
) -> Fact:
    """The same on an event loop, which goes on turning meanwhile."""
    wait = _Wait(what, within, str)
    while True:
        wait.last = found = read()
        if until(found):
            return found
        wait.check()
        await asyncio.sleep(wait.pause_s)


def judge(
    elapsed_s: float,
    available: float,
    before: Mapping[int, Usage],
    after: Mapping[int, Usage],
) -> str:
    """The line that tells a starved wait from a lost wake-up.

    What the processes did decides, before what the machine as a whole was like: a process that
    neither ran nor was ready to run had nothing to do, however busy the machine was.
    """
    spans = {pid: (before[pid], now) for pid, now in after.items() if pid in before}
    ended = [pid for pid, (was, now) in spans.items() if now.state in ("", "Z") and was.state]
    if ended:
        return f"verdict: ENDED: processes {ended} ended during the wait"
    stopped = [pid for pid, (_, now) in spans.items() if now.state == "T"]
    if stopped:
        return f"verdict: STOPPED: processes {stopped} are stopped by a signal"
    starved = {pid: now.starved_s - was.starved_s for pid, (was, now) in spans.items()}
    ran = {pid: now.ran_s - was.ran_s for pid, (was, now) in spans.items()}
    hungry = [pid for pid, waited_s in starved.items() if waited_s > elapsed_s * _MUCH]
    if hungry:
        return (
            f"verdict: STARVED: processes {hungry} were ready to run and had no processor; "
            f"{available:.0%} of the machine was available. The fact may only be late"
        )
    busy = [pid for pid, ran_s in ran.items() if ran_s > elapsed_s * _MUCH]
    if busy:
        return f"verdict: BUSY: processes {busy} were at work, or spinning, during the wait"
    return (
        "verdict: IDLE: every process was alive and had no work. A wake-up was lost, or the fact "
        "cannot come true; see the task dumps"
    )
