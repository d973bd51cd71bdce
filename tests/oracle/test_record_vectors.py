"""Record batches made by kafka-clients read the same here, and ours come out as its bytes."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_kafka.records import batch, legacy
from barnabas_kafka.records.compression import Codec, decompress
from tests.kafka.records.stored import stored_batch
from tests.oracle import vectors

CODECS = {codec.name.lower(): codec for codec in Codec}
VECTORS = list(vectors.load("records"))
MODERN = [vector for vector in VECTORS if vector["magic"] == 2]
SECTION_LIMIT = 1 << 20


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _expected(vector: dict[str, Any]) -> list[batch.Record]:
    return [
        batch.Record(
            record["offset"],
            record["timestamp"],
            _bytes(record["key"]),
            _bytes(record["value"]),
            tuple((name, _bytes(value)) for name, value in record["headers"]),
        )
        for record in vector["records"]
    ]


def _section(data: bytes) -> bytes:
    header = batch.parse_header(data)
    section = data[batch.HEADER_SIZE : header.size]
    return (
        section
        if header.codec is Codec.NONE
        else decompress(header.codec, section, limit=SECTION_LIMIT)
    )


def _stored_records(data: bytes) -> list[batch.Record]:
    """The records with the timestamps written in them, which append time hides from readers."""
    header = batch.parse_header(data)
    as_created = header._replace(attributes=header.attributes & ~batch.APPEND_TIME_FLAG)
    return batch.parse_records(_section(data), as_created)


@pytest.mark.parametrize("codec", CODECS)
def test_batch_reads_as_kafka_reads_it(codec: str) -> None:
    """Every record, its offset, timestamp and headers, and every header field, at all codecs."""
    chosen = [vector for vector in MODERN if vector["codec"] == codec]
    assert chosen
    for vector in chosen:
        data = bytes.fromhex(vector["hex"])
        header = batch.parse_header(data)
        batch.verify_crc(data, 0, header)
        assert header.size == len(data)
        assert header.crc & 0xFFFFFFFF == vector["crc"]
        assert header.codec is CODECS[codec]
        assert header.timestamp_type == vector["timestampType"]
        assert header.max_timestamp == vector["maxTimestamp"]
        assert header.leader_epoch == vector["leaderEpoch"]
        assert (header.base_offset, header.last_offset) == (
            vector["baseOffset"],
            vector["lastOffset"],
        )
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (
            vector["producerId"],
            vector["producerEpoch"],
            vector["baseSequence"],
        )
        assert header.is_transactional == vector["transactional"]
        assert header.is_control == vector["control"]
        assert batch.records(data) == _expected(vector)


@pytest.mark.parametrize("codec", CODECS)
def test_batch_is_built_as_kafka_builds_it(codec: str) -> None:
    """The same bytes where nothing is compressed, else the same bytes inside the compression.

    Compressors differ between their versions, so only what goes into them can be compared.
    """
    for vector in (vector for vector in MODERN if vector["codec"] == codec):
        original = bytes.fromhex(vector["hex"])
        stored = _stored_records(original)
        built = stored_batch(
            [(record.timestamp, record.key, record.value, record.headers) for record in stored],
            base_offset=vector["baseOffset"],
            codec=CODECS[codec],
            append_time=bool(vector["timestampType"]),
            producer_id=vector["producerId"],
            producer_epoch=vector["producerEpoch"],
            base_sequence=vector["baseSequence"],
            transactional=vector["transactional"],
            leader_epoch=vector["leaderEpoch"],
            offset_deltas=[record.offset - vector["baseOffset"] for record in stored],
            max_timestamp=vector["maxTimestamp"],
            control=vector["control"],
        )
        if codec == "none":
            assert built == original
        assert _section(built) == _section(original)
        fixed_fields = slice(batch.ATTRIBUTES_POSITION, batch.HEADER_SIZE)
        assert built[fixed_fields] == original[fixed_fields]
        batch.verify_crc(built, 0, batch.parse_header(built))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_message_set_reads_and_is_built_as_by_kafka(magic: int, codec: str) -> None:
    """The formats before 0.11: relative offsets inside wrappers, checksums, lz4's odd framing."""
    chosen = [vector for vector in VECTORS if vector["magic"] == magic and vector["codec"] == codec]
    assert chosen
    for vector in chosen:
        data, expected = bytes.fromhex(vector["hex"]), _expected(vector)
        found = legacy.messages(data)
        assert [batch.Record(*message[:4]) for message in found] == expected
        built = legacy.build_message_set(
            expected,
            magic=magic,
            codec=CODECS[codec],
            timestamp_type=batch.TimestampType(vector["timestampType"]),
        )
        if codec == "none":
            assert built == data
        else:
            assert _inside_wrapper(built) == _inside_wrapper(data)
        assert [batch.Record(*message[:4]) for message in legacy.messages(built)] == expected


def _inside_wrapper(data: bytes) -> tuple[int, bytes]:
    """The wrapper's offset and the message set in it."""
    (wrapper,) = legacy.parse_message_set(data)
    assert wrapper.value is not None
    content = decompress(wrapper.codec, wrapper.value, limit=SECTION_LIMIT, magic=wrapper.magic)
    return wrapper.offset, content
