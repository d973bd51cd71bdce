"""Tests of barnabas_kafka.protocol.writer: the pieces that are written."""

from typing import Any

import pytest

from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas_kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.protocol.writer import compile_writer


def written(message: Message, version: int) -> bytes:
    """The pieces of a message, joined."""
    pieces: list[Any] = []
    compile_writer(type(message), version)(message, pieces)
    return b"".join(pieces)


def test_null_and_empty_arrays_differ() -> None:
    """Null asks for all topics, an empty list for none; flexible lengths are one more."""
    assert written(MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"
    assert written(MetadataRequest(topics=[]), 1) == b"\0\0\0\0"
    assert written(MetadataRequest(topics=None), 9) == b"\0\1\0\0\0"
    assert written(MetadataRequest(topics=[]), 9) == b"\1\1\0\0\0"


@pytest.mark.parametrize(
    ("replicas", "encoded"),
    [
        (None, b"\0"),
        ([], b"\1"),
        ([1, 2], b"\3\0\0\0\1\0\0\0\2"),
        ([0] * 200, b"\xc9\1" + bytes(800)),
    ],
    ids=["null", "none", "two", "many"],
)
def test_lists_of_numbers(replicas: list[int] | None, encoded: bytes) -> None:
    """Long and short lists, and null, which cancels a reassignment."""
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=0, topics=[ReassignableTopic(name="", partitions=[partition])]
    )
    assert written(request, 0) == bytes(4) + b"\2\1\2" + bytes(4) + encoded + b"\0\0\0"


def test_tagged_fields_ascend() -> None:
    """Only tagged fields that are set are written, by ascending tag, each with its size."""
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=3, max_version=2)],
        zk_migration_ready=True,
        supported_features=[SupportedFeatureKey(name="f", max_version=1)],
    )
    start = b"\0\0\2\0\3\0\0\0\2\0" + bytes(4)
    features = b"\0\x08" + b"\2\2f\0\0\0\1\0"
    assert written(response, 3) == start + b"\2" + features + b"\3\1\1"


def test_nothing_to_write() -> None:
    """A message without fields in a version is empty there."""
    api_versions = written(ApiVersionsResponse(), 0)
    assert api_versions == bytes(6)
    assert written(HeartbeatRequest(group_id="g", member_id="m"), 0) == b"\0\1g\0\0\0\0\0\1m"
