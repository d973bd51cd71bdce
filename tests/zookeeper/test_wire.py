"""Requests as kazoo writes them, replies as it reads them, and bytes that are neither."""

import pytest
from kazoo.protocol import serialization as kazoo
from kazoo.security import ACL, Id

from barnabas_zookeeper import wire
from barnabas_zookeeper.errors import (
    BadArgumentsError,
    BadVersionError,
    InvalidAclError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    NoWatcherError,
    ZooKeeperError,
)
from barnabas_zookeeper.tree import Acl, Stat
from barnabas_zookeeper.wire import MalformedRequestError, Reader

STAT = Stat(
    czxid=1,
    mzxid=2,
    pzxid=3,
    ctime_ms=4,
    mtime_ms=5,
    version=6,
    cversion=7,
    aversion=8,
    ephemeral_owner=9,
    data_length=10,
    num_children=11,
)


def test_a_client_introduces_itself() -> None:
    """The first frame, with and without the flag that old clients do not send."""
    frame = bytes(kazoo.Connect(0, 17, 6000, 5, b"secret", False).serialize())
    asked = wire.Connect(last_zxid=17, timeout_ms=6000, session=5, password=b"secret")
    assert wire.Connect.read(frame) == asked
    assert wire.Connect.read(frame[:-1]) == asked


def test_a_session_is_granted() -> None:
    """kazoo reads timeout, id and password."""
    decoded, end = kazoo.Connect.deserialize(wire.connected(5, 4000, b"secret"), 0)
    assert (decoded.session_id, decoded.time_out, decoded.passwd) == (5, 4000, b"secret")
    assert end == len(wire.connected(5, 4000, b"secret"))


def test_a_request_of_every_kind_of_field() -> None:
    """Texts, bytes, none at all, lists of access, numbers."""
    acl = [ACL(31, Id("digest", "me:x")), ACL(1, Id("world", "anyone"))]
    reader = Reader(bytes(kazoo.Create("/ä", None, acl, 3).serialize()))
    assert (reader.read_string(), reader.read_buffer()) == ("/ä", None)
    assert reader.read_list(reader.read_acl) == [
        Acl(31, "digest", "me:x"),
        Acl(1, "world", "anyone"),
    ]
    assert reader.read_int() == 3
    assert reader.ended


def test_replies() -> None:
    """A stat, names, data and access are read as they were told."""
    assert kazoo.Exists.deserialize(wire.stat(STAT), 0) == (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 3)
    assert kazoo.GetChildren.deserialize(wire.strings(["b", "ä"]), 0) == ["b", "ä"]
    assert kazoo.GetData.deserialize(wire.buffer(None) + wire.stat(STAT), 0)[0] is None
    acl, _ = kazoo.GetACL.deserialize(wire.acl([Acl(31, "digest", "me:x")]) + wire.stat(STAT), 0)
    assert acl == [ACL(31, Id("digest", "me:x"))]


@pytest.mark.parametrize(
    "read",
    [
        Reader.read_int,
        Reader.read_long,
        Reader.read_buffer,
        Reader.read_string,
        lambda reader: reader.read_list(reader.read_string),
        lambda reader: wire.Connect.read(b"\0" * 11),
    ],
)
def test_bytes_that_end_too_soon(read: object) -> None:
    """A length is believed only as far as there are bytes."""
    assert callable(read)
    for frame in (b"\0\0\0", b"\x7f\xff\xff"):
        with pytest.raises(MalformedRequestError, match="ends too soon"):
            read(Reader(frame))


def test_lengths_that_cannot_be() -> None:
    """Nothing is allocated for a list or text that does not fit into its frame."""
    with pytest.raises(MalformedRequestError, match="does not fit"):
        Reader(b"\x7f\xff\xff\xff" + b"\0" * 50).read_list(int)
    with pytest.raises(MalformedRequestError, match="ends too soon"):
        Reader(b"\x7f\xff\xff\xff" + b"\0" * 50).read_buffer()
    with pytest.raises(MalformedRequestError, match="UTF-8"):
        Reader(b"\0\0\0\x01\xff").read_string()


def test_codes_are_those_of_the_zookeeper_protocol() -> None:
    """A reply carries the number, so it must be the one that every client knows."""
    codes = {
        BadArgumentsError: -8,
        NoAuthError: -102,
        NoNodeError: -101,
        BadVersionError: -103,
        NoChildrenForEphemeralsError: -108,
        NodeExistsError: -110,
        NotEmptyError: -111,
        InvalidAclError: -114,
        NoWatcherError: -121,
    }
    assert {kind: kind.code for kind in ZooKeeperError.__subclasses__()} == codes


def test_a_refusal_says_where_and_why() -> None:
    """Logs show the path, and the reason where there is more to say than the error's name."""
    assert str(NoNodeError("/a")) == "/a: NoNodeError"
    assert str(BadVersionError("/a", "version is 2, not 1")) == "/a: version is 2, not 1"
