"""Deadlines by key: a heap in which moving a deadline back costs nothing.

Every heartbeat moves its member's deadline, and almost no deadline is ever met. So a later
deadline is only noted; the entry in the heap keeps its old time and goes back in with the new one
when it comes up. One entry for each key is live at any time.
"""

import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from barnabas_broker.invariants import violated

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """What is due when, in milliseconds of a clock that only ever goes forward, and evenly.

    Sessions are unaffected by wall-clock changes.
    """

    def __init__(self, steady_ms: Callable[[], int]) -> None:
        self._steady_ms = steady_ms
        self._deadlines: dict[K, int] = {}
        # (time, number, key): numbers keep keys, which need no order, from being compared.
        self._heap: list[tuple[int, int, K]] = []
        self._queued: dict[K, tuple[int, int, K]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._deadlines)

    def start(self, key: K, delay_ms: int) -> None:
        """Have `key` come due in so long, and not when it was due before."""
        deadline_ms = self._steady_ms() + delay_ms
        self._deadlines[key] = deadline_ms
        queued = self._queued.get(key)
        if queued is None or queued[0] > deadline_ms:
            self._push(key, deadline_ms)
        assert self._queued[key][0] <= deadline_ms, violated("a key is checked when it is due")

    def cancel(self, key: K) -> None:
        """Forget `key`; one that is not known is not missed."""
        self._deadlines.pop(key, None)

    def __contains__(self, key: K) -> bool:
        return key in self._deadlines

    @property
    def next_ms(self) -> int | None:
        """A time before which nothing is due; None when nothing ever is.

        What was cancelled is not looked for: it costs a wake-up at most, and this is asked often.
        """
        return self._heap[0][0] if self._heap else None

    def pop_due(self) -> K | None:
        """A key whose time has come, the earliest first, no longer timed; None if there is none."""
        now_ms = self._steady_ms()
        while True:
            self._drop_stale()
            if not self._heap or self._heap[0][0] > now_ms:
                return None
            time_ms, _, key = heapq.heappop(self._heap)
            del self._queued[key]
            deadline = self._deadlines[key]
            assert deadline >= time_ms, violated("no deadline is met late")
            if deadline == time_ms:
                del self._deadlines[key]
                return key
            self._push(key, deadline)

    def _push(self, key: K, deadline_ms: int) -> None:
        entry = (deadline_ms, next(self._numbers), key)
        self._queued[key] = entry
        heapq.heappush(self._heap, entry)
        assert len(self._heap) >= len(self._queued), violated("each live entry is in the heap")

    def _drop_stale(self) -> None:
        """Take entries of cancelled keys, and those that an earlier one replaced, off the top."""
        while self._heap:
            entry = self._heap[0]
            key = entry[2]
            current = self._queued.get(key) is entry
            if current and key in self._deadlines:
                return
            heapq.heappop(self._heap)
            if current:
                del self._queued[key]
