"""Counts what goes wrong with clients, by cause, and keeps it from filling the log.

A hostile client can cause thousands of identical complaints a second. Each is counted; one line a
second and cause is logged, and how many were left out is said with the next.
"""

import logging
from collections import Counter
from enum import Enum
from typing import Final

LINE_EVERY_S: Final = 1.0
"""One line per cause in this time: enough to see what happens, little enough for any disk."""


class Cause(Enum):
    """Why a client was refused, delayed or cut off; the value names the counter."""

    BAD_FRAME = "bad-frame"
    BAD_REQUEST = "bad-request"
    SLOW_SENDER = "slow-sender"
    OUTPUT_MEMORY = "output-memory"
    IDLE = "idle"
    TOO_MANY_CONNECTIONS = "too-many-connections"
    TOO_MANY_CONNECTIONS_OF_ADDRESS = "too-many-connections-of-address"
    CONNECTION_RATE = "connection-rate"
    CONNECTION_RATE_OF_ADDRESS = "connection-rate-of-address"
    CONNECTION_EVICTED = "connection-evicted"
    FAILED_AUTHENTICATION = "failed-authentication"
    NO_DESCRIPTORS = "no-descriptors"


class Counters:
    """How often each cause occurred since the broker started, and the log lines about it."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self.totals: Counter[Cause] = Counter()
        self._said_at: dict[Cause, float] = {}
        self._unsaid: Counter[Cause] = Counter()

    def note(self, cause: Cause, now: float, line: str, *args: object) -> None:
        """Count one occurrence at the monotonic time `now`, and log it if it is time for a line."""
        self.totals[cause] += 1
        said_at = self._said_at.get(cause)
        if said_at is not None and now - said_at < LINE_EVERY_S:
            self._unsaid[cause] += 1
            return
        self._said_at[cause] = now
        unsaid = self._unsaid.pop(cause, 0)
        if unsaid:
            self._log.warning(line + " (and %d more like it before)", *args, unsaid)
        else:
            self._log.warning(line, *args)

    def log_suppressed(self, now: float) -> None:
        """Log the number of lines left out, for causes that have been quiet since."""
        for cause, unsaid in list(self._unsaid.items()):
            if now - self._said_at[cause] >= LINE_EVERY_S:
                self._log.warning("%s: %d more that were not logged", cause.value, unsaid)
                self._said_at[cause] = now
                del self._unsaid[cause]
