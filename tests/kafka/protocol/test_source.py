"""Tests of barnabas_kafka.protocol.source."""

import traceback

import pytest

from barnabas_kafka.protocol.codec import DecodeError, decode
from barnabas_kafka.protocol.messages.fetch import FetchRequest, PartitionData
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.protocol.messages.update_metadata import UpdateMetadataRequest
from barnabas_kafka.protocol.schema import INT32, STRING, ArrayOf
from barnabas_kafka.protocol.source import (
    Source,
    absent_fields_at,
    fields_at,
    least_size,
    size_of,
    tagged_fields_at,
)


def test_written_function() -> None:
    """Lines, blocks, layouts and constants make a function that runs."""
    source = Source()
    marker = object()
    name = source.constant("marker", marker)
    assert source.constant("other", marker) == name
    assert source.constant("literal", -1) == "-1"
    with source.block("if value > 1:"):
        source.line(f"return {source.layout('hi', 'pack')}(value, 2)")
    source.line(f"return {name}")
    function = source.function("def f(value):", "test of source")
    assert function(5) == b"\0\5\0\0\0\2"
    assert function(0) is marker


def test_names_are_fresh() -> None:
    """Two locals never share a name."""
    source = Source()
    assert source.fresh("n") != source.fresh("n")


def test_tracebacks_show_written_lines() -> None:
    """Whoever debugs a malformed message sees the line that refused it."""
    with pytest.raises(DecodeError) as caught:
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)
    assert caught.value.__cause__ is not None
    shown = "".join(traceback.format_exception(caught.value.__cause__))
    assert "malformed('topics may not be null')" in shown
    assert "<barnabas MetadataRequest v0 reader>" in shown


def test_fields_of_a_version() -> None:
    """Untagged fields in order, tagged fields by tag, and those that are missing."""
    names = [name for name, _ in fields_at(FetchRequest, 12, flexible=True)]
    assert names[:3] == ["replica_id", "max_wait_ms", "min_bytes"]
    assert [name for name, _ in tagged_fields_at(FetchRequest, 15, flexible=True)] == [
        "cluster_id",
        "replica_state",
    ]
    assert "session_id" in dict(absent_fields_at(FetchRequest, 6))
    # Never flexible at this version, so the tag does not matter.
    assert tagged_fields_at(UpdateMetadataRequest, 5, flexible=False) == []


def test_least_sizes() -> None:
    """The bound on array lengths: no element can be smaller than this."""
    assert size_of("hiq") == 14
    assert least_size(INT32, 0, flexible=False) == 4
    assert (least_size(STRING, 0, flexible=False), least_size(STRING, 9, flexible=True)) == (2, 1)
    assert least_size(ArrayOf(INT32), 0, flexible=False) == 4
    # Index, error, high watermark and the length of the records; in version 12 also last stable
    # and log start offset, preferred replica, compact lengths and tagged fields.
    assert least_size(PartitionData, 0, flexible=False) == 4 + 2 + 8 + 4
    assert least_size(PartitionData, 12, flexible=True) == 4 + 2 + 8 + 8 + 8 + 1 + 4 + 1 + 1
