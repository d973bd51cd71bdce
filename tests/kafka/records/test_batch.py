"""Record batches: layout, header, checksum, stamping in place, reading records."""

import struct

import pytest

from barnabas_kafka.records import batch
from barnabas_kafka.records.batch import (
    HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    Record,
    TimestampType,
)
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.kafka.records.stored import stored_batch

CONTENT = [(1_700_000_000_000 + i, b"key%d" % i, b"value" * i, [("h", b"x")]) for i in range(5)]


def _batch(**options: int | bool) -> bytes:
    return build_batch(CONTENT, base_offset=100, leader_epoch=4, **options)  # type: ignore[arg-type]


def test_layout() -> None:
    """Every field lies where the table in the module says, as KIP-98 defined it."""
    data = stored_batch(
        CONTENT,
        base_offset=0x0102030405060708,
        leader_epoch=0x11121314,
        codec=Codec.ZSTD,
        append_time=True,
        max_timestamp=0x2122232425262728,
        producer_id=0x3132333435363738,
        producer_epoch=0x4142,
        base_sequence=0x51525354,
        transactional=True,
    )
    assert data[0:8] == bytes.fromhex("0102030405060708")
    assert int.from_bytes(data[8:12], "big") == len(data) - 12
    assert data[12:16] == bytes.fromhex("11121314")
    assert data[batch.MAGIC_POSITION] == 2
    assert data[21:23] == bytes([0, 4 | 8 | 16])
    assert int.from_bytes(data[23:27], "big") == 4
    assert int.from_bytes(data[27:35], "big") == 1_700_000_000_000
    assert data[35:43] == bytes.fromhex("2122232425262728")
    assert data[43:51] == bytes.fromhex("3132333435363738")
    assert data[51:53] == bytes.fromhex("4142")
    assert data[53:57] == bytes.fromhex("51525354")
    assert int.from_bytes(data[57:61], "big") == 5
    assert HEADER_SIZE == 61


def test_header_properties() -> None:
    """What the log asks of a header follows from its fields."""
    header = batch.parse_header(
        _batch(producer_id=9, producer_epoch=1, base_sequence=2**31 - 3, transactional=True)
    )
    assert header.size == header.batch_length + 12
    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 104, 105)
    assert header.codec is Codec.NONE
    assert header.timestamp_type is TimestampType.CREATE
    assert header.has_producer_id
    assert header.is_transactional
    assert not header.is_control
    assert header.delete_horizon_ms is None
    assert header.last_sequence == 1  # sequences wrap behind 2^31 - 1


def test_header_of_a_plain_batch() -> None:
    """Without a producer id there is no sequence to count on from."""
    header = batch.parse_header(_batch(control=True))
    assert not header.has_producer_id
    assert header.last_sequence == -1
    assert header.is_control


def test_undefined_codecs_are_refused() -> None:
    """Codec numbers 5 to 7 mean nothing yet."""
    header = batch.parse_header(_batch())
    header = header._replace(attributes=5)
    with pytest.raises(CorruptBatch, match="codec 5"):
        _ = header.codec


@pytest.mark.parametrize("end", range(HEADER_SIZE))
def test_every_cut_header_is_refused(end: int) -> None:
    """Fewer than 61 bytes are no header, wherever they end."""
    with pytest.raises(CorruptBatch):
        batch.parse_header(_batch()[:end])


@pytest.mark.parametrize(("position", "value"), [(16, b"\x01"), (16, b"\x03"), (8, b"\0\0\0\x30")])
def test_bad_magic_and_length_are_refused(position: int, value: bytes) -> None:
    """Only magic 2 and a length of at least a header can be walked on from."""
    data = bytearray(_batch())
    data[position : position + len(value)] = value
    with pytest.raises(CorruptBatch):
        batch.parse_header(data)


def test_negative_length_is_refused() -> None:
    """A negative length must not send a walk backwards."""
    data = bytearray(_batch())
    struct.pack_into(">i", data, 8, -1)
    with pytest.raises(CorruptBatch):
        list(batch.headers(data))


def test_headers_of_several_batches() -> None:
    """Positions and headers come in order; a cut last batch is an error unless allowed."""
    one, two = _batch(), _batch()
    both = one + two
    positions = [(position, header.size) for position, header in batch.headers(both)]
    assert positions == [(0, len(one)), (len(one), len(two))]
    for end in range(len(one) + 1, len(both)):
        with pytest.raises(CorruptBatch):
            list(batch.headers(both[:end]))
        assert len(list(batch.headers(both[:end], allow_partial=True))) == 1


def test_checksum_covers_attributes_to_end() -> None:
    """A change behind the checksum is found; offset and epoch may change freely."""
    data = bytearray(_batch())
    header = batch.parse_header(data)
    batch.verify_crc(data, 0, header)
    for position in (21, 40, HEADER_SIZE, len(data) - 1):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(CorruptBatch):
            batch.verify_crc(changed, 0, batch.parse_header(changed))
    with pytest.raises(CorruptBatch, match="cut short"):
        batch.verify_crc(data[:-1], 0, header)


def test_stamp_changes_offset_and_epoch_only() -> None:
    """The leader's stamp leaves length, checksum and records as they were."""
    data = bytearray(b"pad" + _batch())
    before = bytes(data)
    batch.stamp(memoryview(data), 3, base_offset=2**40, leader_epoch=77)
    header = batch.parse_header(data, 3)
    assert (header.base_offset, header.leader_epoch) == (2**40, 77)
    batch.verify_crc(data, 3, header)
    assert data[:3] == b"pad"
    assert data[3 + 8 : 3 + 12] == before[3 + 8 : 3 + 12]
    assert data[3 + 16 :] == before[3 + 16 :]


def test_append_time_replaces_every_timestamp() -> None:
    """The stamp sets type, max timestamp and a right checksum; readers see only that time."""
    data = bytearray(_batch())
    batch.stamp_timestamp(data, 0, TimestampType.APPEND, 1_800_000_000_000)
    header = batch.parse_header(data)
    batch.verify_crc(data, 0, header)
    assert header.timestamp_type is TimestampType.APPEND
    assert header.max_timestamp == 1_800_000_000_000
    assert {record.timestamp for record in batch.records(data)} == {1_800_000_000_000}


def test_timestamp_type_can_be_taken_back() -> None:
    """Stamping create time clears the attribute again."""
    data = bytearray(_batch())
    batch.stamp_timestamp(data, 0, TimestampType.APPEND, 5)
    batch.stamp_timestamp(data, 0, TimestampType.CREATE, CONTENT[-1][0])
    assert bytes(data) == _batch()


def test_records_come_out_absolute() -> None:
    """Offsets and timestamps are resolved against the header."""
    records = batch.records(b"xx" + _batch(), 2)
    assert records[0] == Record(100, 1_700_000_000_000, b"key0", b"", (("h", b"x"),))
    assert [record.offset for record in records] == [100, 101, 102, 103, 104]
    assert records[-1].timestamp == 1_700_000_000_004


def _with_section(section: bytes, count: int) -> tuple[bytes, BatchHeader]:
    header = batch.parse_header(_batch())
    header = header._replace(record_count=count)
    return section, header


GOOD = bytes([12, 0, 0, 0, 1, 1, 0])


@pytest.mark.parametrize(
    ("section", "count"),
    [
        (GOOD, 2),
        (GOOD + b"\0", 1),
        (GOOD, -1),
        (GOOD, 100),
        (b"\x01" + GOOD[1:], 1),
        (b"\x10" + GOOD[1:], 1),
        (b"\xff\xff\xff\xff\xff\x01" + GOOD, 1),
        (b"\xff\xff\xff\xff\x1f" + GOOD, 1),
        (bytes([12, 0, 0, 0, 3, 1, 0]), 1),
        (bytes([12, 0, 0, 0, 40, 1, 0]), 1),
        (bytes([12, 0, 0, 0, 1, 1, 1]), 1),
        (bytes([12, 0, 0, 0, 1, 1, 90]), 1),
        (bytes([14, 0, 0, 0, 1, 1, 0, 0]), 1),
        (bytes([16, 0, 0, 0, 1, 1, 2, 1, 1]), 1),
    ],
)
def test_malformed_records_are_refused(section: bytes, count: int) -> None:
    """Counts, lengths and numbers that do not fit raise our error and nothing else."""
    with pytest.raises(CorruptBatch):
        batch.parse_records(*_with_section(section, count))


def test_the_smallest_record_is_read() -> None:
    """Seven bytes: null key, null value, no headers."""
    assert batch.parse_records(*_with_section(GOOD, 1)) == [
        Record(100, 1_700_000_000_000, None, None, ())
    ]


def test_header_keys_that_are_not_utf8_survive() -> None:
    """A producer that breaks the contract gets its bytes back when a batch is rebuilt."""
    section = bytes([18, 0, 0, 0, 1, 1, 2, 4]) + b"\xff\xfe" + bytes([1])
    section = bytes([2 * (len(section) - 1)]) + section[1:]
    (record,) = batch.parse_records(*_with_section(section, 1))
    again = build_batch([record[1:]])
    assert again[HEADER_SIZE:] == section


def test_records_of_a_cut_batch_are_refused() -> None:
    """Every truncation raises, compressed or not."""
    for codec in (Codec.NONE, Codec.GZIP):
        data = build_batch(CONTENT, codec=codec)
        for end in range(len(data)):
            with pytest.raises(CorruptBatch):
                batch.records(data[:end])


def test_records_that_do_not_decompress_are_corrupt() -> None:
    """Reading raises one kind of error, whatever layer it came from."""
    data = bytearray(build_batch(CONTENT, codec=Codec.LZ4))
    data[HEADER_SIZE] ^= 0xFF
    with pytest.raises(CorruptBatch):
        batch.records(data)
    with pytest.raises(CorruptBatch):
        batch.records(build_batch(CONTENT, codec=Codec.LZ4), limit=10)
