"""How fast this machine is, and how much of it is left: the unit of every deadline of the tests.

The speed is measured once, by the processor time of a fixed piece of Python. How busy the machine
is, is read whenever it matters: from the run queue, the time stolen by other virtual machines and
the time in which every task waited for a disk (Linux; elsewhere the load average alone).
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ANSWER: Final = 30.0
"""Machine seconds for one request, or for a change that others see at once."""
START: Final = 60.0
"""Machine seconds for a process to start or to end: a broker, a JVM, a container."""
SETTLE: Final = 120.0
"""Machine seconds for a cluster: elections, rolls, ISR changes, rebalances."""
RUN: Final = 300.0
"""Machine seconds for a whole program: a tool of Apache Kafka, a Spark job, a build."""
ATTEMPT_S: Final = 5.0
"""Wall seconds for one attempt of many: what is not answered by then is asked again."""

_REFERENCE_S: Final = 0.0055
"""Processor time of `_work` on the machine that the budgets were chosen on."""
_HEADROOM: Final = 4.0
"""For limits that cannot be raised once they are given away: the machine may become busy later."""
_LEAST_SHARE: Final = 0.05
"""A deadline is stretched by twenty at most, whatever the machine says of itself."""
_LONGEST_S: Final = 3600.0
"""No library takes a longer limit: librdkafka's `request_timeout` is refused above an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the machine says of itself at one moment; counters in seconds since its start."""

    at: float
    runnable: float
    """Threads that run or wait for a processor, the reader not counted."""
    stolen_s: float = 0.0
    """Processor time that the hypervisor gave to others, summed over the processors."""
    disk_stalled_s: float = 0.0
    """Time in which no task could go on because all waited for a disk."""


def read_machine() -> Reading:
    """The machine as it is now."""
    return Reading(
        at=time.monotonic(),
        runnable=_runnable(),
        stolen_s=_stolen_s(),
        disk_stalled_s=_disk_stalled_s(),
    )


def share(before: Reading, now: Reading, processors: int) -> float:
    """The part of a processor that one more thread got between two readings, in (0, 1]."""
    elapsed = max(now.at - before.at, 1e-6)
    stolen = (now.stolen_s - before.stolen_s) / (elapsed * processors)
    stalled = (now.disk_stalled_s - before.disk_stalled_s) / elapsed
    crowd = max(before.runnable, now.runnable)
    free = min(1.0, processors / (crowd + 1)) * (1 - min(stolen, 1)) * (1 - min(stalled, 1))
    return max(_LEAST_SHARE, free)


class Budget:
    """A deadline that counts down in machine seconds."""

    def __init__(
        self,
        units: float,
        *,
        read: Callable[[], Reading] = read_machine,
        processors: int | None = None,
        slowness: float | None = None,
    ) -> None:
        self.units = units
        self.spent = 0.0
        self._read = read
        self._processors = processors or usable_processors()
        self._slowness = slowness or measured_slowness()
        self._began = self._last = read()

    @property
    def elapsed_s(self) -> float:
        """Wall seconds since the start, as of the last call of `left`."""
        return self._last.at - self._began.at

    @property
    def available(self) -> float:
        """The part of this machine's speed that was left over on average, in (0, 1]."""
        return self.spent * self._slowness / self.elapsed_s if self.elapsed_s > 0 else 1.0

    @property
    def slowness(self) -> float:
        """How many times slower this machine is than the reference when idle, at least 1."""
        return self._slowness

    def left(self) -> float:
        """Machine seconds that are left, or less than none, after the time since the last call."""
        now = self._read()
        got = share(self._last, now, self._processors)
        self.spent += (now.at - self._last.at) * got / self._slowness
        self._last = now
        return self.units - self.spent


def seconds(units: float) -> float:
    """Wall seconds for a library's own time limit of so many machine seconds.

    Generous, since it cannot be raised while the library waits: it ends what hangs.
    """
    now = read_machine()
    crowding = max(1.0, (now.runnable + 1) / usable_processors())
    stretched = units * measured_slowness() * min(crowding, 1 / _LEAST_SHARE) * _HEADROOM
    return min(stretched, max(units, _LONGEST_S))


def usable_processors() -> int:
    """The processors that this process may run on: a pinned run has fewer than the machine."""
    return len(os.sched_getaffinity(0))


@functools.cache
def measured_slowness() -> float:
    """How many times slower than the reference this machine runs Python when it is idle."""
    return max(1.0, min(_timed_work() for _ in range(5)) / _REFERENCE_S)


def _timed_work() -> float:
    # Processor time: what others take meanwhile is not this machine's slowness.
    began = time.thread_time()
    _work()
    return time.thread_time() - began


def _work() -> int:
    table: dict[int, int] = {}
    for number in range(60_000):
        table[number & 1023] = table.get(number & 511, 0) + number
    return sum(table.values())


def _runnable() -> float:
    try:
        running = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
    except OSError:
        return max(0.0, os.getloadavg()[0] - 1)
    return max(0.0, float(running) - 1)  # The reader runs, too.


def _stolen_s() -> float:
    try:
        with Path("/proc/stat").open() as lines:
            first = next(lines).split()
    except OSError:
        return 0.0
    return int(first[8]) / os.sysconf("SC_CLK_TCK") if len(first) > 8 else 0.0


def _disk_stalled_s() -> float:
    try:
        lines = Path("/proc/pressure/io").read_text().splitlines()
    except OSError:
        return 0.0
    full = [line for line in lines if line.startswith("full")]
    return int(full[0].rpartition("total=")[2]) / 1e6 if full else 0.0
