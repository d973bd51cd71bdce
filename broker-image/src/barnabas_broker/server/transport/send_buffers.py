"""What waits in memory for clients that do not read: bounded for all of them together.

A client that does not read its responses is not read from either, so each holds at most what one
time slice of requests was answered with. Thousands of such clients are many megabytes all the same.
Beyond the budget the one that has waited longest is dropped: a client that reads would have gone.
Responses that are slices of files hold no memory and are not counted.
"""

from typing import Final, Protocol

from barnabas_broker.invariants import violated
from barnabas_broker.server.transport.counters import Cause

OUTPUT_BYTES_MAX: Final = 64 << 20
"""Memory for responses that clients have not taken, over all connections."""


class SlowReader(Protocol):
    """A connection with responses waiting."""

    def refuse(self, cause: Cause, reason: str) -> None:
        """Drop it."""
        ...


class SendBuffers:
    """Responses waiting in memory, by connection, oldest first."""

    def __init__(self, *, budget: int = OUTPUT_BYTES_MAX) -> None:
        self._budget = budget
        self._waiting: dict[SlowReader, int] = {}
        self.held = 0

    def stalled(self, reader: SlowReader, held_bytes: int) -> None:
        """`reader` has so many bytes waiting now; others are dropped if that is too much."""
        self.held += held_bytes - self._waiting.get(reader, 0)
        self._waiting[reader] = held_bytes
        assert self.held >= held_bytes, violated("what a reader holds is counted")
        while self.held > self._budget and len(self._waiting) > 1:
            oldest = next(iter(self._waiting))
            self.drained(oldest)
            oldest.refuse(
                Cause.OUTPUT_MEMORY, f"clients that do not read hold more than {self._budget} bytes"
            )

    def drained(self, reader: SlowReader) -> None:
        """`reader` has taken everything, or is gone."""
        self.held -= self._waiting.pop(reader, 0)
        assert self.held >= 0, violated("memory is given back once")
        assert self._waiting or not self.held, violated("nothing is held unless a client waits")
