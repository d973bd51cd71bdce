"""Virtual time: what happens next, and in which order.

Everything that happens is an event; an event may plan others. Two runs from one seed make the same
events in the same order, and `trace` is a checksum over all of them that shows it.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any
from zlib import crc32

Act = Callable[..., None]


class Events:
    """The events to come, by time in ms and then by when they were planned."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.now_ms = 0
        self.count = 0
        self.trace = 0
        self._heap: list[tuple[int, int, str, Act, tuple[Any, ...]]] = []
        self._planned = 0
        #: the last things noted, if kept: for people who look at a failing run
        self.transcript: list[str] | None = None

    def after(self, delay_ms: int, label: str, act: Act, *args: Any) -> None:
        """Plan `act(*args)`; `label` is what the trace calls it."""
        self._planned += 1
        heappush(self._heap, (self.now_ms + delay_ms, self._planned, label, act, args))

    def run(self, until_ms: int) -> None:
        """Let everything happen that is due before that time."""
        heap = self._heap
        while heap and heap[0][0] < until_ms:
            self.now_ms, _, label, act, args = heappop(heap)
            self.count += 1
            self.trace = crc32(f"{self.now_ms}{label}".encode(), self.trace)
            act(*args)
        self.now_ms = until_ms

    def note(self, line: str) -> None:
        """Something worth telling; part of the trace."""
        self.trace = crc32(line.encode(), self.trace)
        if self.transcript is not None:
            self.transcript.append(f"{self.now_ms / 1000:9.3f}  {line}")
