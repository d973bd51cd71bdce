"""An event loop whose clock a test moves on: what only takes time is not waited for.

Timers, sessions, idle connections and deadlines of a broker in a thread go by the clock of its
event loop. The clock runs as the machine's does, and jumps when a test says so.
"""

from __future__ import annotations

import asyncio
import time


class MovedLoop(asyncio.SelectorEventLoop):
    """The event loop of a broker under test."""

    _ahead_s = 0.0

    def time(self) -> float:
        """Seconds, ahead of the machine's clock by all that was moved."""
        return super().time() + self._ahead_s

    def pass_time(self, passed_s: float) -> None:
        """Move the clock on, from any thread; the timers that are due then run at once."""
        self.call_soon_threadsafe(self._move, passed_s)

    def _move(self, passed_s: float) -> None:
        self._ahead_s += passed_s


def loops_monotonic_ms() -> int:
    """The monotonic clock of the broker that asks, on its own loop; the machine's elsewhere."""
    try:
        return int(asyncio.get_running_loop().time() * 1000)
    except RuntimeError:
        return time.monotonic_ns() // 1_000_000
