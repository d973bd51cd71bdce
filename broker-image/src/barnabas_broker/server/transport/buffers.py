"""Receive buffers: one scratch for whole frames, pooled buffers for split ones.

Almost every request arrives whole in one read, so all sessions of a loop share one scratch
buffer: it is filled and emptied within one callback and has no owner. A frame that
does not fit moves to a buffer of its own, which grows only as bytes really arrive: a peer that
announces 100 MiB and sends nothing is given the smallest size and no more.
"""

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

Buffer = bytearray | mmap

SCRATCH_BYTES: Final = 1 << 20
"""Size of the shared scratch: with 64 KiB a 64 KiB batch would be split on every read."""

POOLED_SIZES: Final = (1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 21, 1 << 22)

SMALLEST_BYTES: Final = POOLED_SIZES[0]
"""What a peer costs that announces a request and sends nothing of it."""

GROWTH: Final = 2
"""How much larger the next buffer of a growing frame is: few copies, little held in advance."""

POOL_BYTES_MAX: Final = 16 << 20
"""Memory kept for reuse; what comes back above this is left to the allocator."""


class BufferPool:
    """Reusable receive buffers of `POOLED_SIZES`; larger frames get buffers made to measure.

    Reuse matters because a fresh megabyte costs hundreds of page faults, more than receiving
    the bytes does.
    """

    __slots__ = ("_free", "_free_bytes", "_unused", "scratch")

    def __init__(self) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._free: dict[int, list[bytearray]] = {size: [] for size in POOLED_SIZES}
        self._free_bytes = 0
        #: how many of each size were free at all times since `drop_unused`: the first of the list
        self._unused = dict.fromkeys(POOLED_SIZES, 0)

    def size_for(self, at_least: int, *, frame_bytes: int) -> int:
        """The size of the buffer that `take` would give."""
        for size in POOLED_SIZES:
            if size > at_least:
                return size
        return max(at_least, min(frame_bytes, at_least * GROWTH))

    def take(self, at_least: int, *, frame_bytes: int) -> Buffer:
        """A buffer for a frame of `frame_bytes`, of which more than `at_least` will follow.

        A large one is pages of the kernel, which take memory and time only when bytes arrive in
        them: to fill the 100 MiB of a bytearray with zeros would block the loop.
        """
        size = self.size_for(at_least, frame_bytes=frame_bytes)
        free = self._free.get(size)
        if free:
            self._free_bytes -= size
            taken = free.pop()
            self._unused[size] = min(self._unused[size], len(free))
            return taken
        if size > POOLED_SIZES[-1]:
            return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)
        return bytearray(size)

    def give_back(self, buffer: Buffer) -> None:
        """Offer a buffer for reuse. The caller must hold no view of it any more."""
        size = len(buffer)
        if isinstance(buffer, mmap):
            return  # Its pages go with the last view of it.
        if size in self._free and self._free_bytes + size <= POOL_BYTES_MAX:
            self._free[size].append(buffer)
            self._free_bytes += size

    def drop_unused(self) -> None:
        """Return to the allocator the buffers unused since the last call."""
        for size, free in self._free.items():
            unused = self._unused[size]
            del free[:unused]
            self._free_bytes -= unused * size
            self._unused[size] = len(free)
