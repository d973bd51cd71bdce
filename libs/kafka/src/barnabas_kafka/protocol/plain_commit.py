"""OffsetCommit requests of the ordinary kind: read, made into records, answered, a pass for each.

As `protocol.plain_produce` for Produce. Of the ordinary kind are requests in version 2 to 9 that
name topics, have no tagged fields and ask for no retention of their own. `read` takes such a
request apart into tuples, and None says that it is not, malformed requests included: the declared
codec (`messages.offset_commit`) says then what it is. `records` lays out the records that
`__consumer_offsets` keeps of it, as `protocol.embedded` and `records.builder` would, and `answer`
writes the response in which every partition succeeded. Property tests hold that all three are as
the general way has them.

The layout, in versions 2 to 7, and in versions 8 and 9, where lengths and counts are one more than
what they count, as unsigned varints, and `0` is an empty set of tagged fields::

    key, version, correlation id   int16 int16 int32       the same
    client id                      int16 length, bytes     the same, then 0
    group                          int16 length, bytes     varint length, bytes
    generation                     int32                   the same
    member                         int16 length, bytes     varint length, bytes
    group instance                 the same, or -1         the same, or 0; from version 7 on
    retention                      int64 -1                versions 2 to 4
    topics                         int32 count             varint count
      name                         int16 length, bytes     varint length, bytes
      partitions                   int32 count             varint count
        index, offset              int32 int64             the same
        leader epoch               int32                   the same; from version 6 on
        metadata                   int16 length, bytes     varint length, bytes, then 0
                                                           0
                                                           0

A record's key is version 1, group, topic and partition; its value is version 3, offset, leader
epoch, metadata and time of the commit; texts are preceded by an int16 length.
"""

from struct import Struct
from typing import Final

from barnabas_kafka.native import i64
from barnabas_kafka.protocol.group_values import (
    CommittedPartition,
    CommittedTopic,
    GroupCommit,
)
from barnabas_kafka.protocol.plain_produce import count_at, varint

#: Whether this module runs as machine code. A compiled module's source file is the shared object.
COMPILED: Final[bool] = not __file__.endswith(".py")

FIRST_VERSION: Final = 2
LAST_VERSION: Final = 9

_FLEXIBLE: Final = 8
_WITH_INSTANCE: Final = 7
_WITH_EPOCH: Final = 6
_WITHOUT_RETENTION: Final = 5
_THROTTLED: Final = 3
_CLIENT_ID: Final = 8
_NO_EPOCH: Final = -1
_LONGEST: Final = 0x7FFF
"""Of a text, in bytes: longer ones, for which a flexible request has room, fit into no record."""

_KEY_START: Final = Struct(">hh")
_VALUE_START: Final = Struct(">hqih")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")

_SIZE_AND_CORRELATION: Final = Struct(">ii")
_SIZE_CORRELATION_THROTTLE: Final = Struct(">iii")
_FLEXIBLE_START: Final = Struct(">iiBi")
_PARTITION: Final = Struct(">ih")
_PARTITION_8: Final = Struct(">ihB")


def read(frame: bytes, version: i64, most: i64) -> GroupCommit | None:
    """The parts of the OffsetCommit request that fills `frame`, None unless it is plain.

    The version is that in the frame's header, which is not read again. A request of more than
    `most` topics, or partitions of one topic or of all, is not plain: it takes long. One without
    any has nothing to be committed, and is not either.
    """
    if version < FIRST_VERSION or version > LAST_VERSION:
        return None
    try:
        return _read(frame, version, most)
    except (IndexError, UnicodeDecodeError):
        return None


def _read(data: bytes, version: i64, most: i64) -> GroupCommit | None:
    flexible = version >= _FLEXIBLE
    _, position = text_at(data, _CLIENT_ID, False)
    if flexible:
        if data[position] != 0:
            return None
        position += 1
    group, position = text_at(data, position, flexible)
    if group is None:
        return None
    generation: i64 = int32_at(data, position)
    member, position = text_at(data, position + 4, flexible)
    if member is None:
        return None
    instance: bytes | None = None
    if version >= _WITH_INSTANCE:
        instance, position = text_at(data, position, flexible)
    if version < _WITHOUT_RETENTION:
        if data[position : position + 8] != _NO_RETENTION:
            return None
        position += 8
    topics: list[CommittedTopic] = []
    position = _topics(data, position, version, most, topics)
    if position != len(data):
        return None
    return (
        str(group, "utf-8"),
        group,
        generation,
        str(member, "utf-8"),
        None if instance is None else str(instance, "utf-8"),
        topics,
    )


_NO_RETENTION: Final = b"\xff" * 8


def text_at(data: bytes, position: i64, flexible: bool) -> tuple[bytes | None, i64]:
    """The bytes of a text, None if it is null, and the position behind it.

    Raises IndexError for a text that is longer than what there is, or than a record can hold, and
    UnicodeDecodeError for one that is none.
    """
    length: i64 = 0
    if flexible:
        length, position = count_at(data, position, True)
    else:
        length = _int16(data, position)
        position += 2
    if length < 0:
        if not flexible and length != -1:
            raise IndexError
        return None, position
    end: i64 = position + length
    if length > _LONGEST or end > len(data):
        raise IndexError
    text: bytes = data[position:end]
    if not text.isascii():
        str(text, "utf-8")
    return text, end


def _topics(
    data: bytes, position: i64, version: i64, most: i64, found: list[CommittedTopic]
) -> i64:
    """Read the topics into `found`; the position behind the request, -1 if not plain."""
    flexible = version >= _FLEXIBLE
    count, position = count_at(data, position, flexible)
    if count <= 0 or count > most:
        return -1
    named: i64 = 0
    while count > 0:
        name, position = text_at(data, position, flexible)
        if name is None:
            return -1
        partitions: list[CommittedPartition] = []
        position = _partitions(data, position, version, most - named, partitions)
        if position < 0:
            return -1
        named += len(partitions)
        found.append((str(name, "utf-8"), name, partitions))
        count -= 1
    if flexible:
        if data[position] != 0:
            return -1
        position += 1
    return position if named > 0 else -1


def _partitions(
    data: bytes, position: i64, version: i64, most: i64, found: list[CommittedPartition]
) -> i64:
    """Read the partitions of a topic into `found`; the position behind them, -1 if not plain."""
    flexible = version >= _FLEXIBLE
    count, position = count_at(data, position, flexible)
    if count < 0 or count > most:
        return -1
    while count > 0:
        index: i64 = int32_at(data, position)
        offset: i64 = (
            int32_at(data, position + 4) << 32 | int32_at(data, position + 8) & 0xFFFF_FFFF
        )
        position += 12
        epoch: i64 = _NO_EPOCH
        if version >= _WITH_EPOCH:
            epoch = int32_at(data, position)
            position += 4
        metadata, position = text_at(data, position, flexible)
        if metadata is None or not metadata:
            found.append((index, offset, epoch, "", b""))
        else:
            found.append((index, offset, epoch, str(metadata, "utf-8"), metadata))
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


# As in `plain_produce` and `walk`: modules are compiled one by one, and a function of another is a
# Python call that makes an object of each number. Reading a commit of ten partitions took twice
# as long with those of `plain_produce`.


def _int16(data: bytes, position: i64) -> i64:
    """The big-endian 16-bit number at `position`, with its sign."""
    high: i64 = data[position]
    low: i64 = data[position + 1]
    return (high ^ 0x80) - 0x80 << 8 | low


def int32_at(data: bytes, position: i64) -> i64:
    """The big-endian 32-bit number at `position`, with its sign."""
    high: i64 = data[position]
    low: i64 = data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3]
    return (high ^ 0x80) - 0x80 << 24 | low


def records(
    group: bytes, topics: list[CommittedTopic], now_ms: int, first: i64
) -> tuple[bytes, i64]:
    """The records of a commit at that time, in a batch of that time from place `first` on.

    Returns them as they stand in a batch, and the place behind them.
    """
    parts: list[bytes] = []
    key_start = _KEY_START.pack(1, len(group)) + group
    time = _INT64.pack(now_ms)
    for _, name, partitions in topics:
        topic_start = key_start + _INT16.pack(len(name)) + name
        key_size: i64 = len(topic_start) + 4
        key_length = varint(key_size << 1)
        for index, offset, epoch, _, metadata in partitions:
            value_size: i64 = len(metadata) + 24
            value_length = varint(value_size << 1)
            delta = varint(first << 1)
            size: i64 = len(delta) + len(key_length) + key_size + len(value_length) + value_size + 3
            parts.append(varint(size << 1))
            parts.append(b"\0\0")  # No attributes, and the time is that of the batch.
            parts.append(delta)
            parts.append(key_length)
            parts.append(topic_start)
            parts.append(_INT32.pack(index))
            parts.append(value_length)
            parts.append(_VALUE_START.pack(3, offset, epoch, len(metadata)))
            parts.append(metadata)
            parts.append(time)
            parts.append(b"\0")  # No headers.
            first += 1
    return b"".join(parts), first


def answer(version: i64, correlation_id: int, topics: list[CommittedTopic]) -> bytes:
    """The response, its size first, that has no error for any partition of `topics`."""
    flexible = version >= _FLEXIBLE
    parts = [b"", varint(len(topics) + 1) if flexible else _INT32.pack(len(topics))]
    for _, name, partitions in topics:
        if flexible:
            parts.append(varint(len(name) + 1))
            parts.append(name)
            parts.append(varint(len(partitions) + 1))
            parts.extend([_PARTITION_8.pack(each[0], 0, 0) for each in partitions])
            parts.append(b"\0")
        else:
            parts.append(_INT16.pack(len(name)))
            parts.append(name)
            parts.append(_INT32.pack(len(partitions)))
            parts.extend([_PARTITION.pack(each[0], 0) for each in partitions])
    if flexible:
        parts.append(b"\0")
    size = 4
    for part in parts:
        size += len(part)
    if flexible:
        parts[0] = _FLEXIBLE_START.pack(size + 5, correlation_id, 0, 0)
    elif version >= _THROTTLED:
        parts[0] = _SIZE_CORRELATION_THROTTLE.pack(size + 4, correlation_id, 0)
    else:
        parts[0] = _SIZE_AND_CORRELATION.pack(size, correlation_id)
    return b"".join(parts)
