"""A rate held over time: how long to pause after so many bytes, at a rate that may change."""

from __future__ import annotations

import math


class Throttle:
    """Bytes taken ahead of the rate; seconds come in. Idle time is not saved up."""

    __slots__ = ("_ahead_bytes", "_seen_s")

    def __init__(self) -> None:
        self._ahead_bytes = 0.0
        self._seen_s = 0.0

    def took(self, size: int) -> None:
        """Note that ``size`` bytes went through."""
        self._ahead_bytes += size

    def pause_s(self, now_s: float, bytes_per_second: int) -> float:
        """How long nothing more may go through; infinite at a rate of 0."""
        passed_s, self._seen_s = now_s - self._seen_s, now_s
        self._ahead_bytes = max(self._ahead_bytes - passed_s * bytes_per_second, 0.0)
        if not bytes_per_second:
            return math.inf
        return self._ahead_bytes / bytes_per_second
