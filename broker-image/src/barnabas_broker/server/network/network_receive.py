"""Bytes of a connection that were received and cannot be served yet (Kafka's `NetworkReceive`).

Mostly the beginning of one request, of which the rest is awaited; while its session waits for
something else, whole requests, too. The buffer comes from the memory that all sessions share
(`memory_pool`): it grows with what arrives, and where there is none left the session waits for it.
A connection whose requests arrive whole has no such object.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from barnabas_broker.server.network.shared import (
    LARGE_REQUEST_BYTES,
    MOVED_AT_ONCE,
    RECEIVED_AT_ONCE,
    UNBUDGETED_BYTES,
    Shared,
)
from barnabas_broker.server.transport.buffers import Buffer
from barnabas_broker.server.transport.counters import Cause

SIZE_BYTES: Final = 4
"""What comes before each request: its size, big-endian."""


class Receiver(Protocol):
    """The session whose request is received."""

    paused: bool

    def wait_for_memory(self) -> None: ...
    def memory_found(self) -> None: ...
    def refuse(self, cause: Cause, reason: str, /) -> None: ...


class NetworkReceive:
    """What one session has received: `buffer[begun:filled]`.

    `needed` is how much the buffer must hold before there is anything to serve. `begun` is not 0
    only while the session waits.
    """

    __slots__ = (
        "_memory",
        "_released",
        "_shared",
        "begun",
        "buffer",
        "filled",
        "needed",
        "session",
    )

    def __init__(
        self, session: Receiver, shared: Shared, rest: memoryview, *, largest: int, now: float
    ) -> None:
        """Hold `rest` with room for more of its request; larger ones than `largest` are refused."""
        self.session = session
        self._shared = shared
        self._memory = shared.memory
        self._released = False
        self._hold(rest, largest=largest, now=now)

    def replace(self, rest: memoryview, *, largest: int, now: float) -> None:
        """Hold `rest` alone, the end of what was held: all before it was served."""
        outgrown = self.buffer
        self._hold(rest, largest=largest, now=now)
        self._memory.give_back(outgrown)

    def _hold(self, rest: memoryview, *, largest: int, now: float) -> None:
        needed = SIZE_BYTES
        if len(rest) >= SIZE_BYTES:
            size = int.from_bytes(rest[:SIZE_BYTES], "big")
            if size <= largest:  # Else what is here is enough to refuse.
                needed += size
        buffer = self._memory.take(self, len(rest), frame_bytes=needed, now=now)
        if needed > LARGE_REQUEST_BYTES and self._memory.is_shared:
            self._shared.iteration_bytes.spend(len(rest))
        buffer[: len(rest)] = rest
        self.buffer: Buffer = buffer
        self.begun, self.filled, self.needed = 0, len(rest), needed

    def room(self) -> memoryview:
        """Where to receive the next bytes.

        No further than the request in hand: what follows it is then received in the large shared
        buffer again, whole requests at a time, instead of leaving a piece behind every time.
        """
        end = self.needed
        if end > LARGE_REQUEST_BYTES and self._memory.is_shared:
            over = self._shared.iteration_bytes.is_over
            end = min(end, self.filled + (UNBUDGETED_BYTES if over else RECEIVED_AT_ONCE))
        return memoryview(self.buffer)[self.filled : end]

    def served(self, position: int, now: float) -> None:
        """Skip what was served, `position` bytes on, while the session waits before the rest."""
        self.begun += position  # To move a megabyte after each turn would cost as much again.
        self._memory.progressed(self, now)

    def grow(self) -> bool:
        """Move a request that filled its buffer to a larger one; whether that is done.

        Else the session waits, for memory or for its turns to copy, until `memory_found`.
        """
        held_bytes = len(self.buffer)
        if self.filled < held_bytes:
            return True
        larger = self._memory.grow(self, self.filled, frame_bytes=self.needed)
        at_once = larger is not None and held_bytes <= MOVED_AT_ONCE
        if not at_once:
            self.session.wait_for_memory()
        if larger is not None:
            self._move(larger, 0)
        return at_once

    def _move(self, larger: Buffer, position: int) -> None:
        """Copy a request to its larger buffer from `position` on, in turns where it is large."""
        if self._released:  # The connection has ended.
            self._memory.give_back(larger)
            return
        buffer = self.buffer
        end = position + MOVED_AT_ONCE
        self._shared.iteration_bytes.spend(min(end, len(buffer)) - position)
        with memoryview(buffer) as source, memoryview(larger) as target:
            target[position : min(end, len(buffer))] = source[position:end]
        if end < len(buffer):
            self._shared.receiving.join(partial(self._move, larger, end))
            return
        self._memory.give_back(buffer)
        self.buffer = larger
        if position:
            self.session.memory_found()

    def release(self) -> None:
        """All is served, or the connection has ended."""
        self._released = True
        self._memory.release(self, self.buffer)

    # Called by the memory.

    @property
    def received_bytes(self) -> int:
        """How much of the request in hand has arrived."""
        return self.filled

    @property
    def missing_bytes(self) -> int:
        """How much of the request in hand has not arrived."""
        return self.needed - self.filled

    @property
    def receiving(self) -> bool:
        """Whether it is the client's turn to send."""
        return not self.session.paused

    def memory_granted(self) -> None:
        """Take the memory that was missing and read on."""
        if self.grow():
            self.session.memory_found()
