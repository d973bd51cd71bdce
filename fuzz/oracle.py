"""What targets share: how a broken promise is told, and messages held to what codecs promise."""

from __future__ import annotations

from typing import Any, Final

from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.schema import Message

#: What one input of a fuzzer may be at most; larger ones find nothing that these do not.
INPUT_BYTES_MAX: Final = 4096


class BrokenPromiseError(AssertionError):
    """An answer that contradicts what the code under test promises."""


def promise(kept: bool, *words: Any) -> None:
    """Raise BrokenPromiseError unless the promise is kept."""
    if not kept:
        raise BrokenPromiseError(" ".join(map(repr, words)))


def read_and_write(cls: type[Message], data: bytes, version: int, offset: int) -> Message | None:
    """Decode what may be a message; what can be decoded can be encoded, and comes back the same.

    Bytes need not come back: numbers may be written longer than they must, unknown tags are left
    out. A second round changes nothing more. Returns None for what is refused.
    """
    try:
        message, end = codec.decode_from(cls, data, version, offset)
    except codec.DecodeError:
        return None
    promise(offset <= end <= len(data), cls, version, "ends at", end, "of", len(data))
    encoded = codec.encode(message, version)
    again, end = codec.decode_from(cls, encoded, version, 0)
    promise(end == len(encoded), cls, version, "leaves bytes of what it wrote")
    promise(codec.encode(again, version) == encoded, cls, version, "is not stable")
    return message
