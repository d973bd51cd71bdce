"""Tests of barnabas_kafka.protocol.reader: what decoded objects look like."""

from uuid import UUID

import pytest

from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
)
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas_kafka.protocol.messages.sasl_handshake import SaslHandshakeResponse
from barnabas_kafka.protocol.reader import compile_reader


def test_fields_of_other_versions_hold_their_defaults() -> None:
    """A handler may look at any field whatever the version of the request."""
    message, end = compile_reader(MetadataRequest, 0)(b"\0\0\0\1\0\1t", 0)
    assert message == MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    assert message.allow_auto_topic_creation is True
    assert message.topics[0].topic_id is ZERO_UUID
    assert end == 7


def test_ids_are_uuids() -> None:
    """Sixteen bytes become an id; all zeros become the one zero id."""
    read = compile_reader(MetadataRequest, 10)
    for value in (UUID(int=5), ZERO_UUID):
        message, _ = read(b"\2" + value.bytes + b"\0\0\1\0\0\0", 0)
        assert message.topics[0] == MetadataRequestTopic(topic_id=value, name=None)
    assert message.topics[0].topic_id is ZERO_UUID
    assert message.allow_auto_topic_creation is True


@pytest.mark.parametrize(
    ("tail", "cursor"),
    [(b"\xff\0", None), (b"\1\2t\0\0\0\7\0\0", Cursor(topic_name="t", partition_index=7))],
)
def test_structs_that_may_be_null(tail: bytes, cursor: Cursor | None) -> None:
    """A byte tells whether the struct is there (KIP-893)."""
    read = compile_reader(DescribeTopicPartitionsRequest, 0)
    message, _ = read(b"\1\0\0\7\xd0" + tail, 0)
    assert message == DescribeTopicPartitionsRequest(cursor=cursor)


def test_lists_of_text() -> None:
    """Elements are read one after the other."""
    message, _ = compile_reader(SaslHandshakeResponse, 0)(b"\0\0\0\0\0\2\0\1a\0\2bc", 0)
    assert message == SaslHandshakeResponse(mechanisms=["a", "bc"])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer(kind: type) -> None:
    """Bytes, a receive buffer or a view of one read alike."""
    message, _ = compile_reader(MetadataRequest, 0)(kind(b"\0\0\0\1\0\1t"), 0)
    assert message.topics[0].name == "t"
