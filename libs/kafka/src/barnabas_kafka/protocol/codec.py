"""Messages to bytes and back, for any message and version.

The first use of a (message, version) compiles a reader or a writer for exactly that pair from the
declaration (`reader`, `writer`); later uses are one dictionary look-up and a call.

Whatever the peer sends, reading ends in a message or in DecodeError: lengths are compared with the
bytes that are left before anything is allocated for them.
"""

from collections.abc import Callable
from struct import error as StructError  # noqa: N812 - it is an exception and reads like one
from typing import Any, Final, TypeVar

from barnabas_kafka.primitives import Buffer
from barnabas_kafka.protocol import reader, writer
from barnabas_kafka.protocol.schema import Message, RecordSource

M = TypeVar("M", bound=Message)

Part = bytes | bytearray | memoryview | RecordSource


class DecodeError(ValueError):
    """The bytes are not a message of this kind and version."""


class TooManyElements(DecodeError):  # noqa: N818
    """A request may be sound, but holds more elements of arrays than were asked for."""


class EncodeError(ValueError):
    """The message cannot be expressed in this version, or holds a value of the wrong type."""


_READERS: Final[dict[tuple[type[Message], int], reader.Read]] = {}
_WRITERS: Final[dict[tuple[type[Message], int], Callable[[Any, list[Any]], None]]] = {}

# What a compiled reader raises on malformed input: a read past the end (IndexError from a single
# byte, struct's own error from several), text that is not UTF-8, and the checks of the reader.
_MALFORMED: Final = (IndexError, StructError, ValueError)
# What a compiled writer raises on values outside the schema: None where the version has no null,
# a number out of range, a value of another type, text with lone surrogates.
_UNFIT: Final = (StructError, TypeError, AttributeError, ValueError, OverflowError)


def decode_from(
    cls: type[M], data: Buffer, version: int, offset: int, elements_max: int = reader.ELEMENTS_MAX
) -> tuple[M, int]:
    """The message at `offset` and the position after it; raises DecodeError.

    Records are views into `data`, so they live as long as they keep it alive; all else is copied.
    A request with more than `elements_max` elements in all its arrays raises TooManyElements.
    """
    read = _READERS.get((cls, version)) or _compile_reader(cls, version)
    try:
        return read(data, offset, elements_max)
    except reader.TooManyElementsError as error:
        raise TooManyElements(f"{cls.__name__} v{version}: {error}") from error
    except _MALFORMED as error:
        raise DecodeError(f"malformed {cls.__name__} v{version}: {error}") from error


def decode(cls: type[M], data: Buffer, version: int) -> M:
    """The message that starts `data`; raises DecodeError.

    Bytes after the message are left alone, as Apache's broker leaves them.
    """
    return decode_from(cls, data, version, 0)[0]


def encode_parts(message: Message, version: int) -> list[Part]:
    """The encoding in pieces, whose concatenation is the message; raises EncodeError.

    A records field that holds a `RecordSource` is in the list as it is, in its place, and only
    its `length` is encoded: a server sends the pieces between it from memory and the source from
    its file. `parts_length` gives the size of the whole.
    """
    write = _WRITERS.get((type(message), version)) or _compile_writer(type(message), version)
    parts: list[Part] = []
    try:
        write(message, parts)
    except _UNFIT as error:
        name = type(message).__name__
        raise EncodeError(f"cannot encode {name} v{version}: {error}") from error
    return parts


def encode(message: Message, version: int) -> bytes:
    """The encoding of `message`; raises EncodeError."""
    write = _WRITERS.get((type(message), version)) or _compile_writer(type(message), version)
    parts: list[Any] = []
    try:
        write(message, parts)
        return b"".join(parts)
    except _UNFIT as error:
        name = type(message).__name__
        raise EncodeError(f"cannot encode {name} v{version}: {error}") from error


def parts_length(parts: list[Part]) -> int:
    """The number of bytes that the pieces of a message amount to."""
    return sum(
        len(part) if isinstance(part, bytes | bytearray | memoryview) else part.length
        for part in parts
    )


def _compile_reader(cls: type[Message], version: int) -> reader.Read:
    if version not in cls.versions:
        raise DecodeError(f"{cls.__name__} has no version {version}")
    read = _READERS[cls, version] = reader.compile_reader(cls, version)
    return read


def _compile_writer(cls: type[Message], version: int) -> Callable[[Any, list[Any]], None]:
    if version not in cls.versions:
        raise EncodeError(f"{cls.__name__} has no version {version}")
    write = _WRITERS[cls, version] = writer.compile_writer(cls, version)
    return write
