"""Bounds on what is written repeatedly: by key, with the keys themselves bounded."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

KEYS: Final = 10_000


class RateLimit:
    """A token bucket for each key: `burst` at once, then one in each interval. Thread-safe."""

    def __init__(
        self,
        interval_s: float,
        *,
        burst: int = 1,
        keys: int = KEYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._interval_s = interval_s
        self._burst = burst
        self._keys = keys
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def allows(self, key: Hashable) -> bool:
        """Whether the key may be written now; if so, that is counted."""
        with self._lock:
            now = self._clock()
            tokens, since = self._buckets.pop(key, (float(self._burst), now))
            tokens = min(float(self._burst), tokens + (now - since) / self._interval_s)
            allowed = tokens >= 1.0
            self._buckets[key] = (tokens - allowed, now)
            # The longest unused goes first; at worst its key is allowed once too often.
            if len(self._buckets) > self._keys:
                self._buckets.popitem(last=False)
            return allowed
