"""Heartbeat requests read in one pass, and their answers.

As `protocol.plain_produce` for Produce. Every member sends these every few seconds, and all of them
at once when a group is called together. All well-formed requests without tagged fields are plain;
None says that one is not, malformed ones included: the declared codec (`messages.heartbeat`) says
then what it is.

The layout, in versions 0 to 3, and in version 4, where lengths are one more than what they count,
as unsigned varints, and `0` is an empty set of tagged fields::

    key, version, correlation id   int16 int16 int32       the same
    client id                      int16 length, bytes     the same, then 0
    group                          int16 length, bytes     varint length, bytes
    generation                     int32                   the same
    member                         int16 length, bytes     varint length, bytes
    group instance                 the same, or -1         the same, or 0; from version 3 on
                                                           0
"""

from struct import Struct
from typing import Final

from barnabas_kafka.native import i64
from barnabas_kafka.protocol.group_values import GroupHeartbeat
from barnabas_kafka.protocol.plain_commit import int32_at, text_at

#: Whether this module runs as machine code. A compiled module's source file is the shared object.
COMPILED: Final[bool] = not __file__.endswith(".py")

FIRST_VERSION: Final = 0
LAST_VERSION: Final = 4

_FLEXIBLE: Final = 4
_WITH_INSTANCE: Final = 3
_THROTTLED: Final = 1
_CLIENT_ID: Final = 8

#: Answers, their size first: it is always the same.
_ANSWER_0: Final = Struct(">iih")
_ANSWER_1: Final = Struct(">iiih")
_ANSWER_4: Final = Struct(">iiBihB")


def read(frame: bytes, version: i64) -> GroupHeartbeat | None:
    """The content of the Heartbeat request that fills `frame`, None unless it is plain.

    The version is that in the frame's header, which is not read again.
    """
    if version < FIRST_VERSION or version > LAST_VERSION:
        return None
    try:
        return _read(frame, version)
    except (IndexError, UnicodeDecodeError):
        return None


def _read(data: bytes, version: i64) -> GroupHeartbeat | None:
    flexible = version >= _FLEXIBLE
    _, position = text_at(data, _CLIENT_ID, False)
    if flexible:
        if data[position] != 0:
            return None
        position += 1
    group, position = text_at(data, position, flexible)
    generation = int32_at(data, position)
    member, position = text_at(data, position + 4, flexible)
    instance: bytes | None = None
    if version >= _WITH_INSTANCE:
        instance, position = text_at(data, position, flexible)
    if flexible:
        if data[position] != 0:
            return None
        position += 1
    if group is None or member is None or position != len(data):
        return None
    return GroupHeartbeat(
        str(group, "utf-8"),
        generation,
        str(member, "utf-8"),
        None if instance is None else str(instance, "utf-8"),
    )


def answer(version: i64, correlation_id: int, code: int) -> bytes:
    """The response, its size first."""
    if version >= _FLEXIBLE:
        return _ANSWER_4.pack(_ANSWER_4.size - 4, correlation_id, 0, 0, code, 0)
    if version >= _THROTTLED:
        return _ANSWER_1.pack(_ANSWER_1.size - 4, correlation_id, 0, code)
    return _ANSWER_0.pack(_ANSWER_0.size - 4, correlation_id, code)
