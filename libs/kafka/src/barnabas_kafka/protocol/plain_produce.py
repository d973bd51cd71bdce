"""Produce requests of the ordinary kind, read in one pass without an object for every part.

Nearly all requests to a busy broker are Produce, and nearly all of those are alike: version 3 to
12, no transaction, not even a batch of one, no tagged fields, no nulls but the transactional id.
`read` takes such a request apart into tuples that say where the records of each partition lie, and
`answer` writes the response in which every partition succeeded. Whatever is not of that kind,
malformed requests included, makes `read` return None, and the declared codec (`messages.produce`)
says what it is; property tests hold that both read and write the same.

The layout, in versions 3 to 8 and from 9 on, where lengths and counts are one more than what they
count, as unsigned varints, and `0` is an empty set of tagged fields::

    key, version, correlation id    int16 int16 int32      the same
    client id                       int16 length, bytes    the same, then 0
    transactional id                int16 -1               0 (null)
    acks, timeout                   int16 int32            the same
    topics                          int32 count            varint count
      name                          int16 length, bytes    varint length, bytes
      partitions                    int32 count            varint count
        index                       int32                  the same
        records                     int32 length, bytes    varint length, bytes, then 0
                                                           0
                                                           0

As `records/walk.py` this is one source with two lives, compiled where that can be done and plain
Python with the same results elsewhere.
"""

from struct import Struct
from typing import Final

from barnabas_kafka.native import i64

#: Whether this module runs as machine code. A compiled module's source file is the shared object.
COMPILED: Final[bool] = not __file__.endswith(".py")

FIRST_VERSION: Final = 3
LAST_VERSION: Final = 12

#: Index of a partition, and where its records begin and end in the frame.
PlainPartition = tuple[int, int, int]
#: Name of a topic, as text and as it was written, and its partitions.
PlainTopic = tuple[str, bytes, list[PlainPartition]]
#: Client id, acks, and the topics.
PlainRequest = tuple[str | None, int, list[PlainTopic]]

#: Index of a partition, base offset, log append time and log start offset.
PlainAnswer = tuple[int, int, int, int]

_FLEXIBLE: Final = 9
_CLIENT_ID: Final = 8

# Where in a batch its magic and the lower byte of its attributes are, and the bit of transactions.
_MAGIC: Final = 16
_ATTRIBUTES: Final = 22
_TRANSACTIONAL: Final = 0x10

_SIZE_AND_CORRELATION: Final = Struct(">ii")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_PARTITION_3: Final = Struct(">ihqq")
_PARTITION_5: Final = Struct(">ihqqq")
_PARTITION_8: Final = Struct(">ihqqqih")  # No refused records, no message.
_PARTITION_9: Final = Struct(">ihqqqBBB")
_THROTTLE_9: Final = Struct(">iB")


def read(frame: bytes, version: i64, most: i64) -> PlainRequest | None:
    """The parts of the Produce request that fills `frame`, None unless it is of the plain kind.

    The version is that in the frame's header, which is not read again. A request of more than
    `most` topics, or partitions of one topic or of all, is not plain: it takes long.
    """
    if version < FIRST_VERSION or version > LAST_VERSION:
        return None
    try:
        return _read(frame, version >= _FLEXIBLE, most)
    except (IndexError, UnicodeDecodeError):
        return None


def _read(data: bytes, flexible: bool, most: i64) -> PlainRequest | None:
    client_id, position = _start(data, flexible)
    if position < 0:
        return None
    acks: i64 = _int16(data, position)
    topics: list[PlainTopic] = []
    position = _topics(data, position + 6, flexible, most, topics)
    if position < 0:
        return None
    if flexible:
        if data[position] != 0:
            return None
        position += 1
    if position != len(data):
        return None
    return client_id, acks, topics


def _start(data: bytes, flexible: bool) -> tuple[str | None, i64]:
    """The client id, and the position behind it and a transactional id of null; -1 if not plain."""
    client_id: str | None = None
    length: i64 = _int16(data, _CLIENT_ID)
    position: i64 = _CLIENT_ID + 2
    if length >= 0:
        if length > len(data) - position:
            return None, -1
        client_id = str(data[position : position + length], "utf-8")
        position += length
    if flexible:
        plain = data[position] == 0 and data[position + 1] == 0
    else:
        plain = _int16(data, position) == -1
    return client_id, position + 2 if plain else -1


def _topics(data: bytes, position: i64, flexible: bool, most: i64, found: list[PlainTopic]) -> i64:
    """Read the topics into `found`; the position behind them, -1 if not plain."""
    size: i64 = len(data)
    count, position = count_at(data, position, flexible)
    if count <= 0 or count > most:
        return -1
    while count > 0:
        if flexible:
            length, position = count_at(data, position, True)
        else:
            length = _int16(data, position)
            position += 2
        if length < 0 or length > size - position:
            return -1
        name: bytes = data[position : position + length]
        partitions: list[PlainPartition] = []
        position = _partitions(data, position + length, flexible, most, partitions)
        if position < 0:
            return -1
        most -= len(partitions)
        found.append((str(name, "utf-8"), name, partitions))
        count -= 1
    return position


def _partitions(
    data: bytes, position: i64, flexible: bool, most: i64, found: list[PlainPartition]
) -> i64:
    """Read the partitions of a topic into `found`; the position behind them, -1 if not plain."""
    size: i64 = len(data)
    count, position = count_at(data, position, flexible)
    if count < 0 or count > most:
        return -1
    while count > 0:
        index: i64 = _int32(data, position)
        length, position = count_at(data, position + 4, flexible)
        if length < 0 or length > size - position:
            return -1
        if (
            length > _ATTRIBUTES
            and data[position + _MAGIC] == 2
            and data[position + _ATTRIBUTES] & _TRANSACTIONAL
        ):
            return -1  # Whether the whole request is allowed is decided before a part is written.
        found.append((index, position, position + length))
        position += length
        if flexible:
            if data[position] != 0:
                return -1
            position += 1
        count -= 1
    if flexible:
        if data[position] != 0:
            return -1
        position += 1
    return position


def count_at(data: bytes, position: i64, flexible: bool) -> tuple[i64, i64]:
    """A count or length and the position behind it; -1 where it is null or no such number."""
    if not flexible:
        return _int32(data, position), position + 4
    count: i64 = data[position]
    position += 1
    if count < 0x80:
        return count - 1, position
    count &= 0x7F
    shift: i64 = 7
    while shift < 28:
        byte: i64 = data[position]
        position += 1
        count |= (byte & 0x7F) << shift
        if byte < 0x80:
            return count - 1, position
        shift += 7
    return -1, position  # Nothing that large fits into a request.


def _int16(data: bytes, position: i64) -> i64:
    """The big-endian 16-bit number at `position`, with its sign."""
    high: i64 = data[position]
    low: i64 = data[position + 1]
    return (high ^ 0x80) - 0x80 << 8 | low


def _int32(data: bytes, position: i64) -> i64:
    """The big-endian 32-bit number at `position`, with its sign."""
    high: i64 = data[position]
    low: i64 = data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3]
    return (high ^ 0x80) - 0x80 << 24 | low


def answer(
    version: i64,
    correlation_id: int,
    topics: list[PlainTopic],
    answers: list[PlainAnswer],
    throttle_ms: int,
) -> bytes:
    """The response, its size first, for `answers` in the order of the partitions in `topics`."""
    flexible = version >= _FLEXIBLE
    parts = [b"", varint(len(topics) + 1) if flexible else _INT32.pack(len(topics))]
    position = 0
    for _, name, partitions in topics:
        count = len(partitions)
        if flexible:
            parts.append(varint(len(name) + 1))
            parts.append(name)
            parts.append(varint(count + 1))
        else:
            parts.append(_INT16.pack(len(name)))
            parts.append(name)
            parts.append(_INT32.pack(count))
        for index, base, append_time, start in answers[position : position + count]:
            if flexible:
                parts.append(_PARTITION_9.pack(index, 0, base, append_time, start, 1, 0, 0))
            elif version >= 8:
                parts.append(_PARTITION_8.pack(index, 0, base, append_time, start, 0, -1))
            elif version >= 5:
                parts.append(_PARTITION_5.pack(index, 0, base, append_time, start))
            else:
                parts.append(_PARTITION_3.pack(index, 0, base, append_time))
        position += count
        if flexible:
            parts.append(b"\0")
    parts.append(_THROTTLE_9.pack(throttle_ms, 0) if flexible else _INT32.pack(throttle_ms))
    size = 4 + flexible
    for part in parts:
        size += len(part)
    parts[0] = _SIZE_AND_CORRELATION.pack(size, correlation_id) + (b"\0" if flexible else b"")
    return b"".join(parts)


def varint(value: i64) -> bytes:
    """An unsigned varint."""
    if value < 0x80:
        return _SMALL[value]
    encoded: list[int] = []
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SMALL: Final = [bytes((value,)) for value in range(0x80)]
