"""The memory that all unfinished requests share, and which requests may have more.

A request takes memory as its bytes arrive, never by what it announces. Everything held is counted
against one budget (`queued.max.request.bytes`); a connection that needs more than is left stops
being read until others finish or are dropped. Two rules keep honest clients going:

* Requests larger than `SMALL_FRAME_BYTES` may use three quarters of the budget. A client that fills
  it with announced giants leaves the rest to all others.
* One request at a time may go beyond the budget, the one that lacks least: one can always
  finish, so none waits for ever. All in all no more is held than the budget and one
  largest request, as in Apache's memory pool.

A sender has to make progress: `overdue` names those without. It is lenient while there is memory
and strict while another request waits for it. Decides only; times are seconds of one monotonic
clock and come in as arguments.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from barnabas_broker.invariants import violated
from barnabas_broker.server.transport.buffers import (
    SCRATCH_BYTES,
    SMALLEST_BYTES,
    Buffer,
    BufferPool,
)

SMALL_FRAME_BYTES: Final = 2 << 20
"""A request of the default message.max.bytes with room for a few partitions more."""

LARGE_SHARE: Final = 0.75
"""The part of the budget that large requests may fill."""

THRIFTY_READ_BYTES: Final = SMALLEST_BYTES // 2
"""How much is read at once while memory is short: it fits the smallest buffer, which all may have.
"""

GRACE_S: Final = 30.0
BYTES_PER_S_MIN: Final = 1024
"""In any such time a request must grow at this rate: the slowest link that is worth waiting for."""

SHORT_GRACE_S: Final = 5.0
SHORT_BYTES_PER_S_MIN: Final = 64 << 10
SHORT_WHOLE_S: Final = 30.0
"""The same while others wait for memory; the last is the longest time for a whole request."""


class Holder(Protocol):
    """A connection in the middle of a request."""

    @property
    def received_bytes(self) -> int:
        """How much of the request has arrived."""
        ...

    @property
    def missing_bytes(self) -> int:
        """How much of the request has not arrived."""
        ...

    @property
    def receiving(self) -> bool:
        """Whether it is the peer's turn to send, rather than ours to answer or find memory."""
        ...

    def memory_granted(self) -> None:
        """Go on: what was asked for may be taken now."""
        ...


@dataclass(slots=True)
class _Hold:
    size: int
    since: float
    marked_at: float  # When it had last grown fast enough, and to what.
    marked_bytes: int = 0
    beyond: int = 0  # The part of `size` that is outside the budget.

    def mark(self, now: float, received: int) -> None:
        """It has done what could be asked of it until now."""
        self.marked_at, self.marked_bytes = now, received


class MemoryPool:
    """The shared budget of one broker. `read_into` is where sessions without a buffer receive."""

    __slots__ = (
        "_beyond",
        "_holds",
        "_pool",
        "_short_since",
        "_waiting",
        "budget",
        "read_into",
        "used",
    )

    def __init__(self, pool: BufferPool, *, budget: int) -> None:
        self._pool = pool
        self.budget = budget
        self.used = 0  # Within the budget.
        self._beyond: Holder | None = None
        self._holds: dict[Holder, _Hold] = {}
        self._waiting: dict[Holder, int] = {}
        self._short_since: float | None = None  # As `overdue` saw it.
        self.read_into = pool.scratch

    @property
    def is_short(self) -> bool:
        """Whether a request waits for memory."""
        return bool(self._waiting)

    @property
    def is_shared(self) -> bool:
        """Whether more than one request is unfinished."""
        return len(self._holds) > 1

    @property
    def held(self) -> int:
        """Bytes held in all."""
        return sum(hold.size for hold in self._holds.values())

    def take(self, holder: Holder, at_least: int, *, frame_bytes: int, now: float) -> Buffer:
        """A first buffer for bytes that have arrived already; it is never refused.

        If the holder has one, of a request that was served meanwhile, this takes its place, and
        the caller gives that back with `give_back` after copying what is left in it. While memory
        is short only `THRIFTY_READ_BYTES` arrive at once, which keeps this bounded.
        """
        self._forget(holder)
        buffer = self._pool.take(at_least, frame_bytes=frame_bytes)
        self._holds[holder] = _Hold(len(buffer), now, now)
        self._use(len(buffer))
        return buffer

    def grow(self, holder: Holder, at_least: int, *, frame_bytes: int) -> Buffer | None:
        """A larger buffer in place of the full one of `at_least` bytes, or None: wait for it.

        The caller gives the full one back with `give_back` after copying.
        """
        hold = self._holds[holder]
        size = self._pool.size_for(at_least, frame_bytes=frame_bytes)
        if not self._admit(holder, hold, size, frame_bytes):
            self._waiting[holder] = frame_bytes
            return None
        self._waiting.pop(holder, None)
        buffer = self._pool.take(at_least, frame_bytes=frame_bytes)
        if self._beyond is holder:
            hold.beyond += len(buffer) - hold.size
        else:
            self._use(len(buffer) - hold.size)
        assert hold.beyond <= len(buffer), violated("no more is beyond the budget than is held")
        hold.size = len(buffer)
        return buffer

    def progressed(self, holder: Holder, now: float) -> None:
        """Some of the requests that the holder's buffer holds were served."""
        self._holds[holder].mark(now, holder.received_bytes)

    def give_back(self, buffer: Buffer) -> None:
        """Return a buffer that was outgrown; its holder holds the larger one now."""
        self._pool.give_back(buffer)

    def release(self, holder: Holder, buffer: Buffer) -> None:
        """The holder is done with its request, or gone."""
        self._pool.give_back(buffer)
        self._forget(holder)

    def drop_unused(self) -> None:
        """Give up the buffers kept for reuse that were not used since this was last called."""
        self._pool.drop_unused()

    def wake(self) -> None:
        """Grant memory to the requests that lack least. Call it after a release."""
        for holder in sorted(self._waiting, key=lambda waiting: waiting.missing_bytes):
            if self._beyond is not None and self.used >= self.budget:
                return
            if holder in self._waiting:
                holder.memory_granted()

    def overdue(self, now: float) -> Iterator[Holder]:
        """Those whose requests do not arrive fast enough, or that hold memory others need.

        To be asked regularly, every second or so: progress is measured from one time to the next.
        """
        if not self.is_short:
            self._short_since = None
        elif self._short_since is None:
            self._short_since = now
        for holder, hold in list(self._holds.items()):
            if holder in self._waiting:
                hold.mark(now, holder.received_bytes)
            elif self._is_overdue(holder, hold, now):
                yield holder

    def _is_overdue(self, holder: Holder, hold: _Hold, now: float) -> bool:
        received, short_since = holder.received_bytes, self._short_since
        if short_since is None:
            if not holder.receiving or received - hold.marked_bytes >= GRACE_S * BYTES_PER_S_MIN:
                hold.mark(now, received)
            return now - hold.marked_at > GRACE_S
        if received - hold.marked_bytes >= SHORT_GRACE_S * SHORT_BYTES_PER_S_MIN:
            hold.mark(now, received)  # Paused or not: large requests are received in turns.
        if not holder.receiving:
            idle = now - max(hold.marked_at, short_since) > SHORT_GRACE_S
            return idle and hold.size > SMALLEST_BYTES
        return (
            now - max(hold.marked_at, short_since) > SHORT_GRACE_S
            or now - max(hold.since, short_since) > SHORT_WHOLE_S
        )

    def _forget(self, holder: Holder) -> None:
        hold = self._holds.pop(holder, None)
        if hold is None:
            return
        self._waiting.pop(holder, None)
        if self._beyond is holder:
            self._beyond = None
        assert hold.beyond <= hold.size, violated("no more is beyond the budget than is held")
        assert self._holds or self._beyond is None, violated(
            "a request without memory is not beyond"
        )
        self._use(hold.beyond - hold.size)

    def _admit(self, holder: Holder, hold: _Hold, size: int, frame_bytes: int) -> bool:
        if self._beyond is holder:
            return True
        share = 1.0 if frame_bytes <= SMALL_FRAME_BYTES else LARGE_SHARE
        if self.used + size - hold.size <= self.budget * share:
            return True
        if self._beyond is None:
            self._beyond = holder
            return True
        return False

    def _use(self, size: int) -> None:
        self.used += size
        assert self.used >= 0, violated("memory is given back once")
        thrifty = self.budget - self.used < SCRATCH_BYTES
        self.read_into = self._pool.scratch[:THRIFTY_READ_BYTES] if thrifty else self._pool.scratch
