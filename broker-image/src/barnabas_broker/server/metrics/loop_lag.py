"""The lag of the event loop: how long due work waits."""

import asyncio
import time
from typing import Final

from barnabas_broker.server.requests.histogram import Histogram

INTERVAL_S: Final = 0.1


class LoopLag:
    """Asks to be woken, over and over, and notes how late it was."""

    def __init__(self) -> None:
        self.times = Histogram()
        self._began_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to measure."""
        self._began_s = time.thread_time()
        self._sleep()

    @property
    def busy_s(self) -> float:
        """CPU time that the loop's thread, which asks, has used since the start."""
        return time.thread_time() - self._began_s

    def _sleep(self) -> None:
        self._due = self._loop.time() + INTERVAL_S
        self._timer = self._loop.call_at(self._due, self._woken)

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _woken(self) -> None:
        self.times.observe(max(int((self._loop.time() - self._due) * 1_000_000), 0))
        self._sleep()
