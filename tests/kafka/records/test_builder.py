"""Building batches: round trips, gaps, horizons, and other clients as readers and writers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_kafka.records import batch
from barnabas_kafka.records.batch import Record
from barnabas_kafka.records.builder import (
    RecordContent,
    append_varint,
    build_batch,
    encode_records,
    recode_batch,
)
from barnabas_kafka.records.compression import Codec
from tests.kafka.records.other_clients import (
    AioBatchBuilder,
    AioRecords,
    KafkaBuilder,
    KafkaRecords,
)
from tests.kafka.records.stored import stored_batch

NULLABLE = st.none() | st.binary(max_size=40)
CONTENT = st.tuples(
    st.integers(-1, 2**62),
    NULLABLE,
    NULLABLE,
    st.lists(st.tuples(st.text(max_size=10), NULLABLE), max_size=3),
)
SAMPLE: list[RecordContent] = [
    (1_700_000_000_000, b"k", b"v" * 300, [("trace", b"\x01"), ("none", None)]),
    (1_700_000_000_500, None, b"", []),
    (1_699_999_999_000, b"", None, [("", b"")]),
]
# kafka-python needs a further package for snappy.
KAFKA_PYTHON_CODECS = [Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD]


def _plain(content: list[RecordContent], base_offset: int = 0) -> list[Record]:
    return [
        Record(base_offset + index, timestamp, key, value, tuple(headers))
        for index, (timestamp, key, value, headers) in enumerate(content)
    ]


def _read_by_client(record: Any) -> Record:
    headers = tuple((name, value) for name, value in record.headers)
    key, value = (None if part is None else bytes(part) for part in (record.key, record.value))
    return Record(record.offset, record.timestamp, key, value, headers)


@given(content=st.lists(CONTENT, min_size=1, max_size=8), codec=st.sampled_from(Codec))
def test_round_trip(content: list[RecordContent], codec: Codec) -> None:
    """What is built is read back, with a right checksum and the true max timestamp."""
    data = build_batch(content, base_offset=7, codec=codec)
    header = batch.parse_header(data)
    batch.verify_crc(data, 0, header)
    assert header.size == len(data)
    assert header.max_timestamp == max(timestamp for timestamp, *_ in content)
    assert batch.records(data) == _plain(content, 7)


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_varint_round_trip(value: int) -> None:
    """Every 64-bit number takes at most ten bytes and is read back."""
    target = bytearray()
    append_varint(target, value)
    assert len(target) <= 10
    assert batch.varint(bytes(target), 0, bits=64) == (value, len(target))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (-65, "8101")],
)
def test_varint_bytes(value: int, encoded: str) -> None:
    """Zigzag, low group first."""
    target = bytearray()
    append_varint(target, value)
    assert target.hex() == encoded


def test_gaps_left_by_compaction() -> None:
    """A compacted batch keeps its offsets, its span, and may lose all its records."""
    data = stored_batch(SAMPLE[:2], base_offset=50, offset_deltas=[3, 8], last_offset_delta=9)
    assert [record.offset for record in batch.records(data)] == [53, 58]
    assert batch.parse_header(data).next_offset == 60
    empty = stored_batch([], base_offset=50, last_offset_delta=9, max_timestamp=5)
    header = batch.parse_header(empty)
    assert (header.record_count, header.next_offset, header.max_timestamp) == (0, 60, 5)
    assert batch.records(empty) == []


def test_delete_horizon() -> None:
    """The horizon takes the base timestamp's place and timestamps stay what they were."""
    data = stored_batch(SAMPLE, delete_horizon_ms=1_600_000_000_000)
    assert batch.parse_header(data).delete_horizon_ms == 1_600_000_000_000
    assert batch.records(data) == _plain(SAMPLE)


def test_append_time() -> None:
    """The time of appending is given, not derived, and hides the records' own."""
    data = stored_batch(SAMPLE, append_time=True, max_timestamp=42)
    assert {record.timestamp for record in batch.records(data)} == {42}


def test_offset_deltas_must_match_the_records() -> None:
    """One delta per record, or a bug is near."""
    with pytest.raises(ValueError, match="zip"):
        encode_records(SAMPLE, [0], 0)


@pytest.mark.parametrize("target", Codec)
@pytest.mark.parametrize("source", Codec)
def test_recoding_changes_the_codec_only(source: Codec, target: Codec) -> None:
    """The same batch as if it had been built with the other codec."""
    source_batch, target_batch = (
        build_batch(
            SAMPLE,
            base_offset=3,
            codec=codec,
            leader_epoch=9,
            producer_id=1,
            producer_epoch=2,
            base_sequence=3,
            transactional=True,
        )
        for codec in (source, target)
    )
    header = batch.parse_header(source_batch)
    section = batch.records_section(source_batch, 0, header)
    assert recode_batch(header, section, target) == target_batch


@pytest.mark.parametrize("codec", Codec)
def test_aiokafka_reads_ours(codec: Codec) -> None:
    """aiokafka's compiled reader sees our records, checksum included."""
    data = build_batch(SAMPLE, base_offset=12, codec=codec, producer_id=5, producer_epoch=0)
    records = AioRecords(data)
    found = records.next_batch()
    assert found.validate_crc()
    assert [_read_by_client(record) for record in found] == _plain(SAMPLE, 12)
    assert not records.has_next()


@pytest.mark.parametrize("codec", Codec)
def test_ours_reads_aiokafka(codec: Codec) -> None:
    """What aiokafka's producer builds is read by us."""
    builder = AioBatchBuilder(2, codec, 1, 9, 4, 77, 1 << 20)
    for index, (timestamp, key, value, headers) in enumerate(SAMPLE):
        assert builder.append(index, timestamp, key, value, headers)
    data = bytes(builder.build())
    header = batch.parse_header(data)
    batch.verify_crc(data, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 4, 77)
    assert header.is_transactional
    assert batch.records(data) == _plain(SAMPLE)


@pytest.mark.parametrize("codec", KAFKA_PYTHON_CODECS)
def test_kafka_python_reads_ours(codec: Codec) -> None:
    """kafka-python's reader sees our records, checksum included."""
    found = KafkaRecords(build_batch(SAMPLE, base_offset=12, codec=codec)).next_batch()
    assert found.validate_crc()
    assert [_read_by_client(record) for record in found] == _plain(SAMPLE, 12)


@pytest.mark.parametrize("codec", KAFKA_PYTHON_CODECS)
def test_ours_reads_kafka_python(codec: Codec) -> None:
    """What kafka-python's producer builds is read by us."""
    builder = KafkaBuilder(2, codec, 1 << 20)
    for timestamp, key, value, headers in SAMPLE:
        assert builder.append(timestamp, key, value, headers)
    builder.close()
    data = bytes(builder.buffer())
    batch.verify_crc(data, 0, batch.parse_header(data))
    assert batch.records(data) == _plain(SAMPLE)
