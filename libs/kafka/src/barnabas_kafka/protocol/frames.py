"""Frames: every request and response follows its length in four bytes, big-endian.

`FrameReader` cuts a stream of bytes into frames, whatever the pieces it arrives in. It does no
I/O: the owner of a connection feeds it what was received. A server on its hot path reads into a
buffer of its own and shares only `frame_size` and the limits.
"""

from collections.abc import Iterator
from struct import Struct as Layout
from typing import Final

from barnabas_kafka.primitives import Buffer

LENGTH_SIZE: Final = 4
FRAME_SIZE_MAX: Final = 100 * 1024 * 1024
"""Kafka's default of socket.request.max.bytes; a larger frame ends the connection."""

_LENGTH: Final = Layout(">i")


class FrameError(ValueError):
    """The stream announces a frame that cannot be accepted; the connection must be closed."""


def frame_size(data: Buffer, position: int = 0, *, limit: int = FRAME_SIZE_MAX) -> int:
    """The size announced at `position`; raises FrameError where it is negative or over `limit`.

    At least `LENGTH_SIZE` bytes must be there.
    """
    size: int = _LENGTH.unpack_from(data, position)[0]
    if size < 0:
        raise FrameError(f"a frame cannot have {size} bytes")
    if size > limit:
        raise FrameError(f"a frame of {size} bytes is over the limit of {limit}")
    return size


def frame(*parts: Buffer) -> bytes:
    """The parts, joined, behind their length."""
    return b"".join((_LENGTH.pack(sum(map(len, parts))), *parts))


class FrameReader:
    """A buffer of what has been received and not yet taken out as whole frames.

    Invariant: `_buffer` starts at the length of a frame. It holds at most one frame that is not
    complete plus what came with its last piece, so `limit` bounds the memory of a connection.
    """

    __slots__ = ("_buffer", "_limit")

    def __init__(self, *, limit: int = FRAME_SIZE_MAX) -> None:
        self._buffer = bytearray()
        self._limit = limit

    def feed(self, data: Buffer) -> None:
        """Takes in what was received."""
        self._buffer += data

    def frames(self) -> Iterator[bytes]:
        """Takes out the whole frames, without their lengths; raises FrameError after the good ones.

        More may be fed after the iterator has ended.
        """
        position = 0
        try:
            while len(self._buffer) - position >= LENGTH_SIZE:
                start = position + LENGTH_SIZE
                end = start + frame_size(self._buffer, position, limit=self._limit)
                if end > len(self._buffer):
                    break
                position = end
                yield bytes(memoryview(self._buffer)[start:end])
        finally:
            del self._buffer[:position]
