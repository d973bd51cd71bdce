"""Visiting all of many things once in a while, a few at a time: the safety net under notifications.

Work per fetch is proportional to what has changed, which partitions say themselves. What does not
say so (retention, a directory that fails, settings) is found by reading each now and then; to
read all at once would hold up a fetch. Pure: the time comes in.
"""

from collections.abc import Collection, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class GradualScan(Generic[Item]):
    """Every item once in `period_ms`, or with each call where those are rarer."""

    __slots__ = ("_last_ms", "_left", "_period_ms")

    def __init__(self, period_ms: int, now_ms: int) -> None:
        self._period_ms = period_ms
        self._last_ms = now_ms
        self._left: Iterator[Item] = iter(())

    def due(self, items: Collection[Item], now_ms: int) -> list[Item]:
        """Those to read now; some may be of `items` as they were earlier."""
        count = len(items) * (now_ms - self._last_ms) // self._period_ms
        if count <= 0:
            return []
        self._last_ms = now_ms
        if count >= len(items):
            self._left = iter(())
            return list(items)
        found: list[Item] = []
        for _ in range(count):
            item = next(self._left, None)
            if item is None:
                self._left = iter(list(items))
                item = next(self._left)
            found.append(item)
        return found
