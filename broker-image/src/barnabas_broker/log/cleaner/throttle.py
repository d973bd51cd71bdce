"""Keeping reading and writing to so many bytes per second, on average."""

from __future__ import annotations


class Throttle:
    """Says how long to pause; knows no clock."""

    __slots__ = ("_began", "_bytes", "_rate")

    def __init__(self, bytes_per_second: float, now: float) -> None:
        self._rate = bytes_per_second
        self._began = now
        self._bytes = 0

    def pause_s(self, moved: int, now: float) -> float:
        """Seconds to wait after ``moved`` more bytes, at ``now`` (seconds of any clock)."""
        self._bytes += moved
        return max(self._bytes / self._rate - (now - self._began), 0.0)
