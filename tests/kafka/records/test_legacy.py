"""Formats 0 and 1: reading, writing, and conversion from newer formats."""

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_kafka.records import legacy
from barnabas_kafka.records.batch import CorruptBatch, Record, TimestampType
from barnabas_kafka.records.builder import RecordContent, build_batch
from barnabas_kafka.records.compression import (
    Codec,
    DecompressedTooLarge,
    compress,
    decompress,
)
from barnabas_kafka.records.control import ControlType, EndTransactionMarker, build_end_transaction
from barnabas_kafka.records.legacy import Message, UnsupportedConversion
from tests.kafka.records.other_clients import (
    AioLegacyBuilder,
    AioRecords,
    KafkaBuilder,
    KafkaRecords,
)
from tests.kafka.records.stored import stored_batch
from tests.oracle import vectors

NOW = 1_700_000_000_000
CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
# Neither client reads lz4 in format 0, and kafka-python needs a further package for snappy.
AIOKAFKA_CASES = [(0, codec) for codec in CODECS[:3]] + [(1, codec) for codec in CODECS]
KAFKA_PYTHON_CASES = [case for case in AIOKAFKA_CASES if case[1] is not Codec.SNAPPY]
RECORDS = [
    Record(40, NOW, b"a", b"1" * 50),
    Record(41, NOW + 9, None, b""),
    Record(44, NOW + 3, b"", None),
]


def _visible(found: list[Message], magic: int) -> list[Record]:
    """The messages as records, after a look at their magic."""
    assert {message.magic for message in found} == {magic}
    return [Record(*message[:4]) for message in found]


def _of_magic(records: list[Record], magic: int) -> list[Record]:
    """The records as `magic` can hold them."""
    return records if magic else [record._replace(timestamp=-1) for record in records]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_round_trip(magic: int, codec: Codec) -> None:
    """Offsets with gaps, nulls and empty fields survive, compressed or not."""
    data = legacy.build_message_set(RECORDS, magic=magic, codec=codec)
    assert _visible(legacy.messages(data), magic) == _of_magic(RECORDS, magic)


def test_layout_of_magic_0_and_1() -> None:
    """Field by field, as the table in the module says."""
    zero, one = (
        legacy.encode_message(Message(7, 0x0102, b"k", None, magic, 0)) for magic in (0, 1)
    )
    assert zero[:12] == struct.pack(">qi", 7, 4 + 1 + 1 + 4 + 1 + 4)
    assert zero[16:] == b"\0\0" + b"\0\0\0\x01k" + b"\xff\xff\xff\xff"
    assert one[:12] == struct.pack(">qi", 7, 4 + 1 + 1 + 8 + 4 + 1 + 4)
    assert one[16:] == b"\x01\0" + struct.pack(">q", 0x0102) + b"\0\0\0\x01k" + b"\xff\xff\xff\xff"


def test_wrapper_offsets() -> None:
    """A magic 1 wrapper bears the last offset and relative ones inside; magic 0 absolute ones."""
    for magic, inner_offsets in ((0, [40, 41, 44]), (1, [0, 1, 4])):
        data = legacy.build_message_set(RECORDS, magic=magic, codec=Codec.GZIP)
        (wrapper,) = legacy.parse_message_set(data)
        assert wrapper.offset == 44
        assert wrapper.key is None
        assert wrapper.timestamp == (NOW + 9 if magic else -1)
        content = decompress(Codec.GZIP, wrapper.value or b"")
        assert [m.offset for m in legacy.parse_message_set(content)] == inner_offsets


def test_append_time_of_a_wrapper_is_that_of_all() -> None:
    """The broker stamps the wrapper only, so readers take its time for the inner messages."""
    inner = legacy.build_message_set(RECORDS, magic=1)
    wrapper = Message(44, NOW + 77, None, compress(Codec.GZIP, inner), 1, Codec.GZIP | 8)
    found = legacy.open_wrapper(wrapper)
    assert {message.timestamp for message in found} == {NOW + 77}
    assert wrapper.timestamp_type is TimestampType.APPEND


def test_magic_0_has_no_timestamp_type() -> None:
    """The bit means nothing there."""
    assert Message(0, -1, None, None, 0, 8).timestamp_type is TimestampType.CREATE


def test_every_truncation_is_noticed() -> None:
    """A set cut short loses its last entry; a wrapper's content cut short is corrupt."""
    data = legacy.build_message_set(RECORDS, magic=1)
    sizes = [size for _, size, _ in legacy.batch_positions(data)]
    ends = [sum(sizes[:n]) for n in range(len(sizes) + 1)]
    for end in range(len(data)):
        whole = sum(1 for limit in ends[1:] if limit <= end)
        assert len(legacy.messages(data[:end])) == whole
        if end not in ends or end == 0:
            content = compress(Codec.GZIP, data[:end])
            with pytest.raises(CorruptBatch):
                legacy.open_wrapper(Message(0, NOW, None, content, 1, Codec.GZIP))


@given(where=st.integers(12, 10_000), value=st.integers(0, 255))
def test_damage_is_noticed(where: int, value: int) -> None:
    """Any changed byte behind offset and size fails the checksum."""
    data = bytearray(legacy.encode_message(Message(3, NOW, b"key", b"value", 1, 0)))
    where = 12 + where % (len(data) - 12)
    if data[where] == value:
        return
    data[where] = value
    with pytest.raises(CorruptBatch):
        legacy.messages(data)


@given(data=st.binary(max_size=120))
def test_noise_raises_nothing_else(data: bytes) -> None:
    """Random bytes are corrupt or hold nothing."""
    try:
        assert legacy.messages(data) == []
    except CorruptBatch:
        pass


def _entry(body: bytes) -> bytes:
    sealed = zlib.crc32(body).to_bytes(4, "big") + body
    return struct.pack(">qi", 0, len(sealed)) + sealed


@pytest.mark.parametrize(
    "body",
    [
        b"\0\0" + b"\xff" * 4 + b"\0\0\0\x05" + b"1234",
        b"\0\0" + b"\xff\xff\xff\xfe" + b"\xff" * 4,
        b"\0\0" + b"\xff" * 8 + b"x",
        b"\0\0" + b"\0\0\0\x04" + b"1234",
        b"\x01\0" + b"\xff" * 8,
        b"\x01\0" + bytes(8) + b"\0\0",
    ],
)
def test_lengths_that_do_not_add_up(body: bytes) -> None:
    """Behind a right checksum too."""
    with pytest.raises(CorruptBatch):
        legacy.messages(_entry(body))


def test_a_size_below_any_message() -> None:
    """Such an entry could not be stepped over."""
    with pytest.raises(CorruptBatch):
        legacy.messages(struct.pack(">qi", 0, 13) + bytes(13))


def _wrapped(value: bytes | None, magic: int = 1, codec: int = Codec.GZIP) -> bytes:
    return legacy.encode_message(Message(0, NOW, None, value, magic, codec))


@pytest.mark.parametrize(
    "data",
    [
        _wrapped(None),
        _wrapped(compress(Codec.GZIP, b"")),
        _wrapped(b"no gzip"),
        _wrapped(compress(Codec.GZIP, legacy.build_message_set(RECORDS, magic=0))),
        _wrapped(compress(Codec.GZIP, legacy.build_message_set(RECORDS, magic=1, codec=Codec.LZ4))),
        _wrapped(compress(Codec.ZSTD, legacy.build_message_set(RECORDS, magic=1)), codec=4),
    ],
    ids=["null", "empty", "garbage", "other magic", "nested", "zstd"],
)
def test_broken_wrappers(data: bytes) -> None:
    """Each way a wrapper may be wrong is corrupt."""
    with pytest.raises(CorruptBatch):
        legacy.messages(data)


def test_wrappers_are_capped() -> None:
    """The content of a wrapper obeys the limit."""
    data = legacy.build_message_set([Record(0, NOW, None, bytes(9000))], magic=1, codec=Codec.LZ4)
    with pytest.raises(CorruptBatch, match="more than 8000"):
        legacy.messages(data, limit=8000)


def test_wrappers_hold_a_bounded_number_of_messages() -> None:
    """Empty messages compress to almost nothing and cost an object each."""
    content = legacy.encode_message(Message(0, -1, None, None, 0, 0)) * (legacy.WRAPPED_LIMIT + 1)
    wrapper = Message(0, -1, None, compress(Codec.GZIP, content), 0, Codec.GZIP)
    with pytest.raises(DecompressedTooLarge):
        legacy.open_wrapper(wrapper)


# Conversion


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_batches_convert_down(magic: int, codec: Codec) -> None:
    """Headers go; offsets, timestamps (magic 1) and the codec stay."""
    data = stored_batch(
        [(r.timestamp, r.key, r.value, [("h", b"")]) for r in RECORDS],
        base_offset=40,
        offset_deltas=[0, 1, 4],
        codec=codec,
        producer_id=3,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    converted = legacy.down_convert(data, magic=magic)
    assert _visible(legacy.messages(converted), magic) == _of_magic(RECORDS, magic)
    assert {entry.codec for entry in legacy.parse_message_set(converted)} == {codec}


@pytest.mark.parametrize("codec", CODECS)
def test_magic_1_converts_to_0(codec: Codec) -> None:
    """Relative offsets become absolute ones again."""
    data = legacy.build_message_set(RECORDS, magic=1, codec=codec)
    converted = legacy.down_convert(data, magic=0)
    assert _visible(legacy.messages(converted), 0) == _of_magic(RECORDS, 0)
    assert {entry.codec for entry in legacy.parse_message_set(converted)} == {codec}


def test_old_enough_entries_pass_unchanged() -> None:
    """A log may hold three formats in a row; only what is too new is rewritten."""
    zero = legacy.build_message_set(RECORDS, magic=0, codec=Codec.GZIP)
    one = legacy.build_message_set(RECORDS, magic=1)
    two = build_batch([(NOW, b"k", b"v", [])], base_offset=50)
    data = zero + one + two
    assert legacy.down_convert(data, magic=1).startswith(zero + one)
    as_zero = legacy.down_convert(data, magic=0)
    assert as_zero.startswith(zero)
    assert [m.offset for m in legacy.messages(as_zero)] == [40, 41, 44, 40, 41, 44, 50]


def test_append_time_converts_to_magic_1() -> None:
    """The broker's time and its mark survive, in wrapper and messages."""
    for codec in (Codec.NONE, Codec.GZIP):
        data = stored_batch(
            [(5, None, b"v", [])],
            codec=codec,
            append_time=True,
            max_timestamp=NOW,
        )
        converted = legacy.down_convert(data, magic=1)
        (entry,) = legacy.parse_message_set(converted)
        assert entry.timestamp_type is TimestampType.APPEND
        assert [message.timestamp for message in legacy.messages(converted)] == [NOW]


def test_records_below_the_fetch_offset_are_left_out() -> None:
    """Of uncompressed batches only: each record becomes an entry of its own there."""
    content: list[RecordContent] = [(NOW, None, b"%d" % i, []) for i in range(5)]
    plain = legacy.down_convert(build_batch(content, base_offset=10), magic=1, first_offset=13)
    assert [message.offset for message in legacy.messages(plain)] == [13, 14]
    packed = build_batch(content, base_offset=10, codec=Codec.GZIP)
    found = legacy.messages(legacy.down_convert(packed, magic=1, first_offset=13))
    assert [message.offset for message in found] == [10, 11, 12, 13, 14]
    one = legacy.build_message_set(RECORDS, magic=1)
    assert len(legacy.messages(legacy.down_convert(one, magic=0, first_offset=44))) == 1
    assert legacy.down_convert(build_batch(content), magic=0, first_offset=9) == b""


def test_control_batches_are_left_out() -> None:
    """Old consumers would take a marker for a message."""
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    control = build_end_transaction(marker, producer_id=1, producer_epoch=0, timestamp_ms=NOW)
    data = build_batch([(NOW, None, b"v", [])])
    assert legacy.down_convert(control, magic=1) == b""
    assert len(legacy.messages(legacy.down_convert(data + control, magic=1))) == 1


def test_zstd_cannot_be_converted() -> None:
    """Old clients cannot read it, in a batch or a message set."""
    data = build_batch([(NOW, None, b"v", [])], codec=Codec.ZSTD)
    with pytest.raises(UnsupportedConversion):
        legacy.down_convert(data, magic=1)
    with pytest.raises(UnsupportedConversion):
        legacy.build_message_set(RECORDS, magic=1, codec=Codec.ZSTD)


def test_batches_before_zstd_are_converted() -> None:
    """An old client gets on until the first batch that it can never read."""
    plain = build_batch([(NOW, None, b"v", [])])
    data = plain + build_batch([(NOW, None, b"w", [])], codec=Codec.ZSTD)
    assert len(legacy.messages(legacy.down_convert(data, magic=1))) == 1
    with pytest.raises(UnsupportedConversion):
        legacy.down_convert(data, magic=1, first_offset=1)


def test_a_cut_batch_is_left_out_of_a_conversion() -> None:
    """Fetch may end in the middle of a batch."""
    data = build_batch([(NOW, None, b"v", [])])
    assert len(legacy.messages(legacy.down_convert(data + data[:-1], magic=1))) == 1


def test_damaged_batches_do_not_convert() -> None:
    """What does not decompress is corrupt, in either format."""
    bad_batch = bytearray(build_batch([(NOW, None, b"v", [])], codec=Codec.GZIP))
    bad_batch[61] ^= 0xFF
    with pytest.raises(CorruptBatch):
        legacy.down_convert(bad_batch, magic=1)
    with pytest.raises(CorruptBatch):
        legacy.down_convert(_wrapped(b"no gzip"), magic=0)


def test_no_records_are_no_bytes() -> None:
    """An empty message set is empty."""
    assert legacy.build_message_set([], magic=1, codec=Codec.GZIP) == b""


# Second opinions


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_of_kafka_clients(magic: int) -> None:
    """Java's message sets read as Java reads them; ours are byte for byte the same.

    Compressors differ between their versions, so compressed ones are compared for lz4 only where
    even the frame, with magic 0's odd header checksum, comes out alike for small contents.
    """
    chosen = [vector for vector in vectors.load("records") if vector["magic"] == magic]
    assert chosen
    for vector in chosen:
        data = bytes.fromhex(vector["hex"])
        expected = [
            Record(r["offset"], r["timestamp"], _bytes(r["key"]), _bytes(r["value"]))
            for r in vector["records"]
        ]
        assert _visible(legacy.messages(data), magic) == expected
        if vector["codec"] in ("none", "lz4"):
            built = legacy.build_message_set(
                expected,
                magic=magic,
                codec=Codec[vector["codec"].upper()],
                timestamp_type=TimestampType(vector["timestampType"]),
            )
            assert built == data


def _read_by_client(record: Any, magic: int) -> Record:
    key, value = (None if part is None else bytes(part) for part in (record.key, record.value))
    return Record(record.offset, record.timestamp if magic else -1, key, value)


@pytest.mark.parametrize(("magic", "codec"), AIOKAFKA_CASES)
def test_aiokafka_reads_ours(magic: int, codec: Codec) -> None:
    """aiokafka's reader agrees, entry by entry."""
    found = AioRecords(legacy.build_message_set(RECORDS, magic=magic, codec=codec))
    result: list[Record] = []
    while found.has_next():
        entry = found.next_batch()
        assert entry.validate_crc()
        result += [_read_by_client(record, magic) for record in entry]
    assert result == _of_magic(RECORDS, magic)


@pytest.mark.parametrize(("magic", "codec"), AIOKAFKA_CASES)
def test_ours_reads_aiokafka(magic: int, codec: Codec) -> None:
    """What aiokafka's old producer built is read."""
    builder = AioLegacyBuilder(magic, codec, 1 << 20)
    for index, record in enumerate(RECORDS):
        assert builder.append(index, record.timestamp, record.key, record.value)
    expected = [record._replace(offset=index) for index, record in enumerate(RECORDS)]
    data = bytes(builder.build())
    found = _visible(legacy.messages(_as_stored(data, codec, magic)), magic)
    assert found == _of_magic(expected, magic)


def _as_stored(data: bytes, codec: Codec, magic: int) -> bytes:
    """Give a producer's wrapper, which it sends with offset 0, the last offset as a broker does."""
    if codec is Codec.NONE or magic == 0:
        return data
    return struct.pack(">q", len(RECORDS) - 1) + data[8:]


@pytest.mark.parametrize(("magic", "codec"), KAFKA_PYTHON_CASES)
def test_kafka_python_agrees_both_ways(magic: int, codec: Codec) -> None:
    """kafka-python reads ours and we read its."""
    found = KafkaRecords(legacy.build_message_set(RECORDS, magic=magic, codec=codec))
    result = [_read_by_client(record, magic) for entry in found for record in entry]
    assert result == _of_magic(RECORDS, magic)
    builder = KafkaBuilder(magic, codec, 1 << 20)
    for record in RECORDS:
        assert builder.append(record.timestamp, record.key, record.value)
    builder.close()
    data = _as_stored(bytes(builder.buffer()), codec, magic)
    expected = [record._replace(offset=index) for index, record in enumerate(RECORDS)]
    assert _visible(legacy.messages(data), magic) == _of_magic(expected, magic)
