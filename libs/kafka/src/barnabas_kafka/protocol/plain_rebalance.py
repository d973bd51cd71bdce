"""JoinGroup and SyncGroup requests read in one pass each, and their answers.

As `protocol.plain_heartbeat` for Heartbeat: when a group is called together each member sends one
of each, and the answers leave all at once. All well-formed requests without tagged fields and of no
more elements than asked for are plain; None says that one is not, malformed ones included: the
declared codecs (`messages.join_group`, `messages.sync_group`) say then what it is. Property tests
hold that requests and answers are as these have them.

The layout of JoinGroup, in versions 0 to 5, and from version 6 on, where lengths and counts are one
more than what they count, as unsigned varints, and `0` is an empty set of tagged fields::

    key, version, correlation id   int16 int16 int32       the same
    client id                      int16 length, bytes     the same, then 0
    group                          int16 length, bytes     varint length, bytes
    session timeout                int32                   the same
    rebalance timeout              int32                   the same; from version 1 on
    member                         int16 length, bytes     varint length, bytes
    group instance                 the same, or -1         the same, or 0; from version 5 on
    protocol type                  int16 length, bytes     varint length, bytes
    protocols                      int32 count             varint count
      name                         int16 length, bytes     varint length, bytes
      metadata                     int32 length, bytes     varint length, bytes, then 0
    reason                                                 varint length, bytes, or 0; from 8 on
                                                           0

That of SyncGroup is flexible from version 4 on, and has up to the client id the same::

    group                          int16 length, bytes     varint length, bytes
    generation                     int32                   the same
    member                         int16 length, bytes     varint length, bytes
    group instance                 the same, or -1         the same, or 0; from version 3 on
    protocol type, protocol                                the same, or 0; from version 5 on
    assignments                    int32 count             varint count
      member                       int16 length, bytes     varint length, bytes
      assignment                   int32 length, bytes     varint length, bytes, then 0
                                                           0
"""

import struct
from struct import Struct
from typing import Final

from barnabas_kafka.native import i64
from barnabas_kafka.protocol.group_values import GroupJoin, GroupSync
from barnabas_kafka.protocol.messages.join_group import JoinGroupResponse
from barnabas_kafka.protocol.messages.sync_group import SyncGroupResponse
from barnabas_kafka.protocol.plain_commit import int32_at, text_at
from barnabas_kafka.protocol.plain_produce import count_at, varint

#: Whether this module runs as machine code. A compiled module's source file is the shared object.
COMPILED: Final[bool] = not __file__.endswith(".py")

LAST_JOIN: Final = 9
LAST_SYNC: Final = 5

_CLIENT_ID: Final = 8

_JOIN_FLEXIBLE: Final = 6
_JOIN_WITH_REBALANCE_TIMEOUT: Final = 1
_JOIN_WITH_INSTANCE: Final = 5
_JOIN_WITH_REASON: Final = 8
_JOIN_THROTTLED: Final = 2
_JOIN_WITH_TYPE: Final = 7
_JOIN_WITH_SKIP: Final = 9
_NO_TIMEOUT: Final = -1

_SYNC_FLEXIBLE: Final = 4
_SYNC_WITH_INSTANCE: Final = 3
_SYNC_THROTTLED: Final = 1
_SYNC_WITH_PROTOCOL: Final = 5

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_SIZE_AND_CORRELATION: Final = Struct(">ii")
_ERROR_AND_GENERATION: Final = Struct(">hi")
_NO_THROTTLE: Final = b"\0\0\0\0"
_NULL: Final = b"\xff\xff"


def read_join(frame: bytes, version: i64, most: i64) -> GroupJoin | None:
    """The content of the JoinGroup request that fills `frame`, None unless it is plain.

    The version is that in the frame's header, which is not read again. One that names more than
    `most` protocols is not plain.
    """
    if version < 0 or version > LAST_JOIN:
        return None
    try:
        return _read_join(frame, version, most)
    except (IndexError, UnicodeDecodeError):
        return None


def _read_join(data: bytes, version: i64, most: i64) -> GroupJoin | None:
    flexible = version >= _JOIN_FLEXIBLE
    client, position = text_at(data, _CLIENT_ID, False)
    if flexible:
        position = _untagged(data, position)
    group, position = text_at(data, position, flexible)
    session_timeout = int32_at(data, position)
    position += 4
    rebalance_timeout: i64 = _NO_TIMEOUT
    if version >= _JOIN_WITH_REBALANCE_TIMEOUT:
        rebalance_timeout = int32_at(data, position)
        position += 4
    member, position = text_at(data, position, flexible)
    instance: bytes | None = None
    if version >= _JOIN_WITH_INSTANCE:
        instance, position = text_at(data, position, flexible)
    kind, position = text_at(data, position, flexible)
    pairs: list[tuple[str, bytes]] = []
    position = _pairs(data, position, flexible, most, pairs)
    if version >= _JOIN_WITH_REASON:
        _, position = text_at(data, position, True)
    if flexible:
        position = _untagged(data, position)
    if group is None or member is None or kind is None or position != len(data):
        return None
    return GroupJoin(
        "" if client is None else str(client, "utf-8"),
        str(group, "utf-8"),
        session_timeout,
        rebalance_timeout,
        str(member, "utf-8"),
        None if instance is None else str(instance, "utf-8"),
        str(kind, "utf-8"),
        tuple(pairs),
    )


def read_sync(frame: bytes, version: i64, most: i64) -> GroupSync | None:
    """The content of the SyncGroup request that fills `frame`, None unless it is plain.

    As `read_join`; one that names more than `most` assignments is not plain.
    """
    if version < 0 or version > LAST_SYNC:
        return None
    try:
        return _read_sync(frame, version, most)
    except (IndexError, UnicodeDecodeError):
        return None


def _read_sync(data: bytes, version: i64, most: i64) -> GroupSync | None:
    flexible = version >= _SYNC_FLEXIBLE
    _, position = text_at(data, _CLIENT_ID, False)
    if flexible:
        position = _untagged(data, position)
    group, position = text_at(data, position, flexible)
    generation = int32_at(data, position)
    member, position = text_at(data, position + 4, flexible)
    instance: bytes | None = None
    kind: bytes | None = None
    protocol: bytes | None = None
    if version >= _SYNC_WITH_INSTANCE:
        instance, position = text_at(data, position, flexible)
    if version >= _SYNC_WITH_PROTOCOL:
        kind, position = text_at(data, position, True)
        protocol, position = text_at(data, position, True)
    pairs: list[tuple[str, bytes]] = []
    position = _pairs(data, position, flexible, most, pairs)
    if flexible:
        position = _untagged(data, position)
    if group is None or member is None or position != len(data):
        return None
    return GroupSync(
        str(group, "utf-8"),
        generation,
        str(member, "utf-8"),
        None if instance is None else str(instance, "utf-8"),
        None if kind is None else str(kind, "utf-8"),
        None if protocol is None else str(protocol, "utf-8"),
        pairs,
    )


def _untagged(data: bytes, position: i64) -> i64:
    """The position behind an empty set of tagged fields; raises IndexError for any other."""
    if data[position] != 0:
        raise IndexError
    return position + 1


def _pairs(
    data: bytes, position: i64, flexible: bool, most: i64, found: list[tuple[str, bytes]]
) -> i64:
    """Read names and what belongs to them into `found`; the position behind them.

    Raises IndexError for what is not plain.
    """
    size: i64 = len(data)
    count, position = count_at(data, position, flexible)
    if count < 0 or count > most:
        raise IndexError
    while count > 0:
        name, position = text_at(data, position, flexible)
        length, position = count_at(data, position, flexible)
        if name is None or length < 0 or length > size - position:
            raise IndexError
        found.append((str(name, "utf-8"), data[position : position + length]))
        position += length
        if flexible:
            position = _untagged(data, position)
        count -= 1
    return position


def answer_join(version: i64, correlation_id: int, response: JoinGroupResponse) -> bytes | None:
    """The response, its size first; None for one that the declared codec has to look at.

    That is one with a throttle time, or which the version has no place for.
    """
    try:
        return _join(version, correlation_id, response)
    except struct.error:
        return None


def _join(version: i64, correlation_id: int, response: JoinGroupResponse) -> bytes | None:
    flexible = version >= _JOIN_FLEXIBLE
    protocol = response.protocol_name
    skip = response.skip_assignment
    if (
        response.throttle_time_ms
        or (protocol is None and version < _JOIN_WITH_TYPE)
        or (skip and version < _JOIN_WITH_SKIP)
    ):
        return None
    parts: list[bytes] = [b""]
    if flexible:
        parts.append(b"\0")
    if version >= _JOIN_THROTTLED:
        parts.append(_NO_THROTTLE)
    parts.append(_ERROR_AND_GENERATION.pack(response.error_code, response.generation_id))
    if version >= _JOIN_WITH_TYPE:
        _text(parts, response.protocol_type, True)
    _text(parts, protocol, flexible)
    _text(parts, response.leader, flexible)
    if version >= _JOIN_WITH_SKIP:
        parts.append(b"\1" if skip else b"\0")
    _text(parts, response.member_id, flexible)
    members = response.members
    _count(parts, len(members), flexible)
    for member in members:
        _text(parts, member.member_id, flexible)
        if version >= _JOIN_WITH_INSTANCE:
            _text(parts, member.group_instance_id, flexible)
        _bytes(parts, member.metadata, flexible)
        if flexible:
            parts.append(b"\0")
    return _framed(parts, correlation_id, flexible)


def answer_sync(version: i64, correlation_id: int, response: SyncGroupResponse) -> bytes | None:
    """As `answer_join`."""
    try:
        return _sync(version, correlation_id, response)
    except struct.error:
        return None


def _sync(version: i64, correlation_id: int, response: SyncGroupResponse) -> bytes | None:
    if response.throttle_time_ms:
        return None
    flexible = version >= _SYNC_FLEXIBLE
    parts: list[bytes] = [b""]
    if flexible:
        parts.append(b"\0")
    if version >= _SYNC_THROTTLED:
        parts.append(_NO_THROTTLE)
    parts.append(_INT16.pack(response.error_code))
    if version >= _SYNC_WITH_PROTOCOL:
        _text(parts, response.protocol_type, True)
        _text(parts, response.protocol_name, True)
    _bytes(parts, response.assignment, flexible)
    return _framed(parts, correlation_id, flexible)


def _framed(parts: list[bytes], correlation_id: int, flexible: bool) -> bytes:
    """All parts, behind their size in place of the first."""
    if flexible:
        parts.append(b"\0")
    size: i64 = 4
    for part in parts:
        size += len(part)
    parts[0] = _SIZE_AND_CORRELATION.pack(size, correlation_id)
    return b"".join(parts)


def _text(parts: list[bytes], text: str | None, flexible: bool) -> None:
    """Add a text, or null."""
    if text is None:
        parts.append(b"\0" if flexible else _NULL)
        return
    encoded = text.encode("utf-8")
    length: i64 = len(encoded)
    parts.append(varint(length + 1) if flexible else _INT16.pack(length))
    parts.append(encoded)


def _bytes(parts: list[bytes], content: bytes, flexible: bool) -> None:
    """Add bytes behind their length."""
    _count(parts, len(content), flexible)
    parts.append(content)


def _count(parts: list[bytes], count: i64, flexible: bool) -> None:
    """Add a count."""
    parts.append(varint(count + 1) if flexible else _INT32.pack(count))
