"""Whether the event loop turns, as other threads see it.

kazoo's heartbeats come from a thread of its own: a broker whose event loop hangs would be alive
to ZooKeeper for ever, and lead unavailable partitions. While the loop is `hung`
the session says nothing (`zk.session`), so that it ends and others lead. Apache's brokers answer
in many threads, and need no such thing.

Only a loop that serves is watched: it may be busy for long at the start and while it stops. What
counts is the session's timeout, at least `TIMEOUT_MIN_S`: a machine that is merely slow turns its
loops in that time, and one that was halted as a whole turns them as soon as it goes on.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

INTERVAL_S: Final = 1.0

TIMEOUT_MIN_S: Final = 10.0
"""Several times what a loop on an overloaded machine has been seen to need for a turn."""


class LoopProgress:
    """Notes once a second that the loop turns. `hung` is for any thread."""

    def __init__(self, timeout_s: float, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._timeout_s = max(timeout_s, TIMEOUT_MIN_S)
        self._clock_s = clock_s
        #: when the loop turned last; None while it is not watched
        self._turned_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Watch the running loop from now on."""
        self._turned_s = self._clock_s()
        self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self.start)

    def stop(self) -> None:
        """Watch it no more; called on the loop."""
        self._turned_s = None
        if self._timer is not None:
            self._timer.cancel()

    def hung(self) -> bool:
        """Whether the loop is watched, and has not turned for too long."""
        turned_s = self._turned_s
        return turned_s is not None and self._clock_s() - turned_s > self._timeout_s
