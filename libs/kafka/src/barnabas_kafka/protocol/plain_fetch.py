"""Fetch requests of the ordinary kind, read in one pass without an object for every part.

As `protocol.plain_produce` for Produce. Of the ordinary kind are requests of consumers, in version
10 to 17, that belong to no fetch session and have no tagged fields. `read` takes such a request
apart into tuples, and None says that it is not, malformed requests included: the declared codec
(`messages.fetch`) says then what it is. `answer` writes what lies between the records of a response
in which every partition succeeded; the records themselves are the caller's to put in.

The layout, in versions 10 and 11, and from 12 on, where lengths and counts are one more than what
they count, as unsigned varints, and `0` is an empty set of tagged fields::

    key, version, correlation id      int16 int16 int32         the same
    client id                         int16 length, bytes       the same, then 0
    replica id                        int32 -1                  until version 14
    wait, min bytes, max bytes        int32 int32 int32         the same
    isolation level                   int8                      the same
    session id, epoch                 int32 0, int32 -1         the same
    topics                            int32 count               varint count
      name                            int16 length, bytes       varint length, bytes; or
      id                                                        16 bytes from version 13 on
      partitions                      int32 count               varint count
        index, leader epoch, offset   int32 int32 int64         the same
        epoch of the last record                                int32
        log start offset, max bytes   int64 int32               the same, then 0
                                                                0
    forgotten topics                  int32 0                   varint 1
    rack                              int16 length, bytes       varint length, bytes; from 11 on
                                                                0
"""

import struct
from struct import Struct
from typing import Final, NamedTuple

from barnabas_kafka.protocol.plain_produce import count_at, varint

#: Whether this module runs as machine code. A compiled module's source file is the shared object.
COMPILED: Final[bool] = not __file__.endswith(".py")

FIRST_VERSION: Final = 10
LAST_VERSION: Final = 17

_FLEXIBLE: Final = 12
_WITH_RACK: Final = 11
FIRST_BY_ID: Final = 13
_WITHOUT_REPLICA: Final = 15
_ID_BYTES: Final = 16
_CLIENT_ID: Final = 8

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_LIMITS: Final = Struct(">iiibii")
_WANTED_10: Final = Struct(">iiqqi")
_WANTED_12: Final = Struct(">iiqiqiB")

# An answer up to the number of its topics, with room for its size in front.
_HEAD_10: Final = Struct(">iiihii")
_HEAD_12: Final = Struct(">iiBihi")
# A partition up to its records' length, which it includes until version 11.
_FOUND_10: Final = Struct(">ihqqqii")
_FOUND_11: Final = Struct(">ihqqqiii")
_FOUND_12: Final = Struct(">ihqqqBi")
_NO_REPLICA: Final = -1

#: Index of a partition, the leader epoch that the client knows, the offset from which it wants
#: records, the epoch of the last one it has, and at most how many bytes.
PlainWanted = tuple[int, int, int, int, int]
#: Name or id of a topic as it was written, and its partitions.
PlainTopic = tuple[bytes, list[PlainWanted]]
#: High watermark, last stable offset, log start offset, and bytes of records.
PlainFound = tuple[int, int, int, int]


class PlainFetch(NamedTuple):
    """What an ordinary request asks for; times in ms. `names_rack`: whether it says where it is."""

    client_id: str | None
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    topics: list[PlainTopic]
    names_rack: bool


def read(frame: bytes, version: int, most: int) -> PlainFetch | None:
    """The parts of the Fetch request that fills `frame`, None unless it is of the plain kind.

    The version is that in the frame's header, which is not read again. A request that names more
    than `most` partitions, or one of them twice, is not plain.
    """
    if version < FIRST_VERSION or version > LAST_VERSION:
        return None
    try:
        return _read(frame, version, most)
    except (IndexError, struct.error, UnicodeDecodeError):
        return None


def _read(data: bytes, version: int, most: int) -> PlainFetch | None:
    flexible = version >= _FLEXIBLE
    client_id = None
    (length,) = _INT16.unpack_from(data, _CLIENT_ID)
    position = _CLIENT_ID + 2
    if length >= 0:
        client_id = str(data[position : position + length], "utf-8")
        position += length
    if flexible:
        if data[position]:
            return None
        position += 1
    if version < _WITHOUT_REPLICA:
        if _INT32.unpack_from(data, position)[0] != _NO_REPLICA:
            return None
        position += 4
    wait, least, limit, isolation, session, epoch = _LIMITS.unpack_from(data, position)
    if session != 0 or epoch != -1:
        return None
    topics: list[PlainTopic] = []
    position = _topics(data, position + _LIMITS.size, version, most, topics)
    if position < 0:
        return None
    end, names_rack = _end(data, position, version)
    if end != len(data):
        return None
    return PlainFetch(client_id, wait, least, limit, isolation, topics, names_rack)


def _topics(data: bytes, position: int, version: int, most: int, found: list[PlainTopic]) -> int:
    """Read the topics into `found`; the position behind them, -1 if not plain."""
    count, position = count_at(data, position, version >= _FLEXIBLE)
    if count < 0 or count > most:
        return -1
    for _ in range(count):
        position = _topic(data, position, version, most, found)
        if position < 0:
            return -1
        most -= len(found[-1][1])
    if count > 1 and len({name for name, _ in found}) != count:
        return -1
    return position


def _topic(data: bytes, position: int, version: int, most: int, found: list[PlainTopic]) -> int:
    """Read one topic into `found`; the position behind it, -1 if not plain."""
    flexible = version >= _FLEXIBLE
    length, position = _name_at(data, position, version)
    if length < 0:
        return -1
    name = data[position : position + length]
    count, position = count_at(data, position + length, flexible)
    end = position + count * (_WANTED_12.size if flexible else _WANTED_10.size)
    if count < 0 or count > most or end > len(data):
        return -1
    partitions = _partitions(data[position:end], flexible)
    if len(partitions) != count or (count > 1 and _repeats(partitions)):
        return -1
    found.append((name, partitions))
    if not flexible:
        return end
    return end + 1 if data[end] == 0 else -1


def _name_at(data: bytes, position: int, version: int) -> tuple[int, int]:
    """Length of the name or id of a topic, and the position behind that."""
    if version >= FIRST_BY_ID:
        return _ID_BYTES, position
    if version >= _FLEXIBLE:
        return count_at(data, position, True)
    return _INT16.unpack_from(data, position)[0], position + 2


def _partitions(data: bytes, flexible: bool) -> list[PlainWanted]:
    """The partitions of a topic, without those that have tagged fields."""
    if flexible:
        return [
            (index, leader_epoch, offset, last_epoch, limit)
            for index, leader_epoch, offset, last_epoch, _, limit, tags in _WANTED_12.iter_unpack(
                data
            )
            if not tags
        ]
    return [
        (index, leader_epoch, offset, -1, limit)
        for index, leader_epoch, offset, _, limit in _WANTED_10.iter_unpack(data)
    ]


def _repeats(partitions: list[PlainWanted]) -> bool:
    return len({wanted[0] for wanted in partitions}) != len(partitions)


def _end(data: bytes, position: int, version: int) -> tuple[int, bool]:
    """Where a request without forgotten topics ends that has its topics before `position`; whether
    it names a rack. -1 if it is not plain.
    """
    flexible = version >= _FLEXIBLE
    forgotten, position = count_at(data, position, flexible)
    if forgotten != 0:
        return -1, False
    if version < _WITH_RACK:
        return position, False
    if not flexible:
        (length,) = _INT16.unpack_from(data, position)
        return position + 2 + length if length >= 0 else -1, length > 0
    length, position = count_at(data, position, True)
    if length < 0 or data[position + length]:
        return -1, False
    return position + length + 1, length > 0


def answer(
    version: int,
    correlation_id: int,
    throttle_ms: int,
    topics: list[PlainTopic],
    found: list[PlainFound],
    *,
    committed: bool,
) -> list[bytearray]:
    """The bytes before the records of each partition, and after the last.

    `found` has the partitions of all topics in their order; `committed` is whether the answer
    says that nothing among the records was aborted, which it does where that was asked for.
    """
    flexible = version >= _FLEXIBLE
    if flexible:
        part = bytearray(_HEAD_12.pack(0, correlation_id, 0, throttle_ms, 0, 0))
        part += varint(len(topics) + 1)
    else:
        part = bytearray(_HEAD_10.pack(0, correlation_id, throttle_ms, 0, 0, len(topics)))
    first = part
    parts = [part]
    size = position = 0
    for name, wanted in topics:
        part += _topic_head(version, name, len(wanted))
        for index, *_ in wanted:
            high_watermark, stable, start, length = found[position]
            position += 1
            offsets = (index, 0, high_watermark, stable, start)
            if flexible:
                part += _FOUND_12.pack(*offsets, 1 if committed else 0, _NO_REPLICA)
                part += varint(length + 1)
            elif version >= _WITH_RACK:
                part += _FOUND_11.pack(*offsets, 0 if committed else -1, _NO_REPLICA, length)
            else:
                part += _FOUND_10.pack(*offsets, 0 if committed else -1, length)
            size += len(part) + length
            part = bytearray(b"\0" if flexible else b"")
            parts.append(part)
        if flexible:
            part += b"\0"
    if flexible:
        part += b"\0"
    _INT32.pack_into(first, 0, size + len(part) - 4)
    return parts


def _topic_head(version: int, name: bytes, partitions: int) -> bytes:
    """A topic in an answer, up to its first partition."""
    if version >= FIRST_BY_ID:
        return name + varint(partitions + 1)
    if version >= _FLEXIBLE:
        return varint(len(name) + 1) + name + varint(partitions + 1)
    return _INT16.pack(len(name)) + name + _INT32.pack(partitions)
