"""ZooKeeper's wire format: what clients send, read with every length checked; replies, written.

Numbers are big-endian; strings, byte strings and lists begin with their length, -1 for none.
Sources: `zookeeper.jute` and the `ZooDefs.OpCode` of Apache ZooKeeper.
"""

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from barnabas_zookeeper.tree import Acl, Event, Stat

T = TypeVar("T")

NOTIFICATION_XID = -1
PING_XID = -2
_CONNECTED = 3  # KeeperState.SyncConnected
_INT = struct.Struct("!i")
_LONG = struct.Struct("!q")
_STAT = struct.Struct("!qqqqiiiqiiq")
_HEADER = struct.Struct("!iqi")
_MULTI_HEADER = struct.Struct("!i?i")


class Op(IntEnum):
    """What a request asks for."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN_2 = 12
    CHECK = 13
    MULTI = 14
    CREATE_2 = 15
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES_2 = 105
    ADD_WATCH = 106
    CLOSE = -11


class MalformedRequestError(Exception):
    """The bytes are no request; nothing can be said to a client that sends such."""


class Reader:
    """Reads the fields of one frame in their order. All raise MalformedRequestError."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._at = 0

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self._at == len(self._frame)

    def read_int(self) -> int:
        """A number of four bytes."""
        number: int = _INT.unpack(self._take(4))[0]
        return number

    def read_long(self) -> int:
        """A number of eight bytes."""
        number: int = _LONG.unpack(self._take(8))[0]
        return number

    def read_bool(self) -> bool:
        """A byte that is 0 or not."""
        return self._take(1) != b"\0"

    def read_buffer(self) -> bytes | None:
        """Bytes, or none at all."""
        length = self.read_int()
        return None if length < 0 else self._take(length)

    def read_string(self) -> str:
        """Text; none at all is empty."""
        try:
            return (self.read_buffer() or b"").decode()
        except UnicodeDecodeError as error:
            raise MalformedRequestError("a text is not UTF-8") from error

    def read_list(self, item: Callable[[], T]) -> list[T]:
        """A list of what `item` reads; it cannot have more entries than bytes are left."""
        count = self.read_int()
        if count > len(self._frame) - self._at:
            raise MalformedRequestError(f"a list of {count} does not fit into the request")
        return [item() for _ in range(count)]

    def read_acl(self) -> Acl:
        """One entry of an ACL."""
        return Acl(self.read_int(), self.read_string(), self.read_string())

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._frame):
            raise MalformedRequestError("the request ends too soon")
        taken = self._frame[self._at : end]
        self._at = end
        return taken


@dataclass(frozen=True, slots=True)
class Connect:
    """The first frame of a connection; session 0 asks for a new one."""

    last_zxid: int
    timeout_ms: int
    session: int
    password: bytes

    @classmethod
    def read(cls, frame: bytes) -> "Connect":
        """Raises MalformedRequestError."""
        reader = Reader(frame)
        reader.read_int()  # The protocol's version, which has always been 0.
        request = cls(
            reader.read_long(), reader.read_int(), reader.read_long(), reader.read_buffer() or b""
        )
        # Clients before 3.4 do not say whether a member that only reads would do.
        if not reader.ended:
            reader.read_bool()
        return request


def connected(session: int, timeout_ms: int, password: bytes) -> bytes:
    """The answer to Connect; a session of 0 says that the one asked for has expired."""
    return _INT.pack(0) + _INT.pack(timeout_ms) + _LONG.pack(session) + buffer(password) + b"\0"


def reply(xid: int, zxid: int, error: int = 0, body: bytes = b"") -> bytes:
    """A reply, without its length; with an error it has no body."""
    return _HEADER.pack(xid, zxid, error) + body


def notification(event: Event, zxid: int) -> bytes:
    """The notification of a watch."""
    body = _INT.pack(event.type.value) + _INT.pack(_CONNECTED) + string(event.path)
    return reply(NOTIFICATION_XID, zxid, body=body)


def buffer(data: bytes | None) -> bytes:
    """Bytes with their length."""
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


def string(text: str) -> bytes:
    """Text with its length."""
    return buffer(text.encode())


def strings(texts: Iterable[str]) -> bytes:
    """A list of texts."""
    written = [string(text) for text in texts]
    return _INT.pack(len(written)) + b"".join(written)


def number(value: int) -> bytes:
    """A number of four bytes."""
    return _INT.pack(value)


def acl(entries: Iterable[Acl]) -> bytes:
    """An ACL, encoded."""
    written = [
        _INT.pack(each.permissions) + string(each.scheme) + string(each.id) for each in entries
    ]
    return _INT.pack(len(written)) + b"".join(written)


def stat(value: Stat) -> bytes:
    """A znode's stat."""
    return _STAT.pack(
        value.czxid,
        value.mzxid,
        value.ctime_ms,
        value.mtime_ms,
        value.version,
        value.cversion,
        value.aversion,
        value.ephemeral_owner,
        value.data_length,
        value.num_children,
        value.pzxid,
    )


def result(op: int, body: bytes = b"") -> bytes:
    """What became of one operation of a transaction."""
    return _MULTI_HEADER.pack(op, False, -1 if op == -1 else 0) + body


END_OF_RESULTS = _MULTI_HEADER.pack(-1, True, -1)
