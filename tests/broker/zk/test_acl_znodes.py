"""Znodes of ACLs, byte for byte as Kafka 3.9 writes them."""

from __future__ import annotations

import pytest

from barnabas_broker.zk.acl_znodes import LITERAL, PREFIXED, AclZnode, Entry, decode_change
from barnabas_broker.zk.names import is_znode_name
from barnabas_broker.zk.znodes import MalformedZnodeError

ENTRY = Entry("User:alice", "Allow", "Read", "*")
JSON = (
    b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
    b'"operation":"Read","host":"*"}]}'
)
CHANGE = b'{"version":1,"resourceType":"TRANSACTIONAL_ID","name":"t-","patternType":"PREFIXED"}'


def test_entries_of_a_resource() -> None:
    """Written and read."""
    znode = AclZnode(LITERAL, "Topic", "orders")
    assert znode.path == "/kafka-acl/Topic/orders"
    assert znode.encode([ENTRY]) == JSON
    assert znode.decode(JSON) == [ENTRY]
    assert znode.decode(b"") == znode.decode(None) == []


def test_changes() -> None:
    """Of literal patterns a word before the name, of prefixed ones JSON."""
    literal, prefixed = (
        AclZnode(LITERAL, "Topic", "a:b"),
        AclZnode(PREFIXED, "TransactionalId", "t-"),
    )
    assert literal.change_path == "/kafka-acl-changes/acl_changes_"
    assert literal.encode_change("TOPIC") == b"TOPIC:a:b"
    assert decode_change(f"{literal.change_path}0", b"TOPIC:a:b") == (LITERAL, "TOPIC", "a:b")
    assert prefixed.path == "/kafka-acl-extended/prefixed/TransactionalId/t-"
    assert prefixed.change_path == "/kafka-acl-extended-changes/acl_changes_"
    assert prefixed.encode_change("TRANSACTIONAL_ID") == CHANGE
    read = decode_change(f"{prefixed.change_path}0", CHANGE)
    assert read == (PREFIXED, "TRANSACTIONAL_ID", "t-")


@pytest.mark.parametrize(
    "data",
    [
        b"{", b"[]", b"{}", b'{"version":2,"acls":[]}', b'{"version":1,"acls":[1]}',
        b'{"version":1,"acls":[{"principal":"alice","permissionType":"Allow","operation":"Read","host":"*"}]}',
        b'{"version":1,"acls":[{"principal":"User:a","permissionType":1,"operation":"Read","host":"*"}]}',
    ],
)  # fmt: skip
def test_an_unreadable_acl_is_reported_with_its_path(data: bytes) -> None:
    """Named by its path."""
    with pytest.raises(MalformedZnodeError, match="/kafka-acl/Topic/orders"):
        AclZnode(LITERAL, "Topic", "orders").decode(data)


@pytest.mark.parametrize("name", ["a", "*", "a.b", "...", "CN=a, O=b", "\u00f6", "\U00002603"])
def test_valid_znode_names(name: str) -> None:
    """What tools name resources by."""
    assert is_znode_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "\x00", "a\n", "\x7f", "\ue000", "\U0001f600"]
)
def test_invalid_znode_names(name: str) -> None:
    """ZooKeeper refuses the whole request."""
    assert not is_znode_name(name)
