"""Znodes of delegation tokens, as Apache Kafka writes them."""

from __future__ import annotations

import json

import pytest

from barnabas_broker.zk.acls import Protection, protection
from barnabas_broker.zk.token_znodes import CHANGES, TokenZnode, decode_change
from barnabas_broker.zk.znodes import MalformedZnodeError

TOKEN = TokenZnode("id", "User:a b*~", "User:carol", ("User:bob", "User:CN=x,O=y"), 1, 2, 3)
# As Kafka 3.9.1 writes it, whose fields are in no order.
THEIRS = (
    b'{"owner":"User%3Aa%20b%2A%7E","tokenRequester":"User%3Acarol",'
    b'"renewers":["User%3Abob","User%3ACN%3Dx%2CO%3Dy"],"expiryTimestamp":2,"tokenId":"id",'
    b'"version":3,"issueTimestamp":1,"maxTimestamp":3}'
)


def test_tokens_are_written_as_kafka_does() -> None:
    """The same fields with the same values; names are escaped as Kafka's Sanitizer does."""
    assert json.loads(TOKEN.encode()) == json.loads(THEIRS)
    assert TokenZnode.decode("id", THEIRS) == TOKEN
    assert TOKEN.path == "/delegation_token/tokens/id"
    assert protection(TOKEN.path) is Protection.PRIVATE


def test_older_versions_have_no_requester() -> None:
    """It is the owner then."""
    value = json.loads(THEIRS)
    del value["tokenRequester"]
    value["version"] = 1
    found = TokenZnode.decode("id", json.dumps(value).encode())
    assert found.requester == found.owner == "User:a b*~"


@pytest.mark.parametrize(
    "change",
    [
        {"version": 4}, {"version": 0}, {"version": "3"}, {"version": None}, {"owner": "alice"},
        {"owner": 7}, {"tokenRequester": None}, {"renewers": 5}, {"renewers": ["bob"]},
        {"issueTimestamp": "1"}, {"maxTimestamp": None}, {"expiryTimestamp": True},
        {"tokenId": "other"},
    ],
    ids=str,
)  # fmt: skip
def test_malformed_token_znodes_are_refused(change: dict[str, object]) -> None:
    """The error names the znode."""
    value = {**json.loads(THEIRS), **change}
    with pytest.raises(MalformedZnodeError, match="/delegation_token/tokens/id"):
        TokenZnode.decode("id", json.dumps(value).encode())
    with pytest.raises(MalformedZnodeError):
        TokenZnode.decode("id", None)


def test_notifications() -> None:
    """They hold the id of a token, and nothing else."""
    assert decode_change(CHANGES, b"abc-_9") == "abc-_9"
    for data in (None, b"", b"a/b", b"\xff", b".."):
        with pytest.raises(MalformedZnodeError):
            decode_change(CHANGES, data)
