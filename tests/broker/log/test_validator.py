"""What a leader accepts from producers, and the error each refusal carries."""

import struct
import tracemalloc
from collections.abc import Sequence
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.log import validator
from barnabas_broker.log.validator import (
    RECORD_ERRORS_LIMIT,
    InvalidBatch,
    ProduceRules,
    TooMuchAtOnce,
    ValidatedBatches,
    validate_produce,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.records import batch, legacy
from barnabas_kafka.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE,
    Record,
    TimestampType,
    parse_header,
    records,
    records_section,
)
from barnabas_kafka.records.builder import RecordContent, build_batch
from barnabas_kafka.records.compression import Codec, compress
from barnabas_kafka.records.walk import LARGEST
from tests.kafka.records.stored import stored_batch

NOW = 1_700_000_000_000
CONTENT: list[RecordContent] = [
    (NOW - 20, b"a", b"1", [("h", b"x")]),
    (NOW - 5, b"b", b"2" * 100, []),
    (NOW - 10, b"c", None, []),
]
RULES = ProduceRules()


def _validate(data: bytes | bytearray | memoryview, **rules: object) -> ValidatedBatches:
    return validate_produce(data, rules=ProduceRules(**rules), now_ms=NOW)  # type: ignore[arg-type]


def _refused(
    data: bytes | bytearray | memoryview, code: ErrorCode, **rules: object
) -> InvalidBatch:
    with pytest.raises(InvalidBatch) as caught:
        _validate(data, **rules)
    assert caught.value.code is code, caught.value
    return caught.value


def _sealed(data: bytes | bytearray, edits: Sequence[tuple[int, str, int]] = ()) -> bytearray:
    """`data` with fields replaced (position, struct format, value) and its length and CRC right."""
    sealed = bytearray(data)
    for position, kind, value in edits:
        struct.pack_into(kind, sealed, position, value)
    struct.pack_into(">i", sealed, 8, len(sealed) - 12)
    crc = batch.checksum(sealed, 0, len(sealed))
    struct.pack_into(">I", sealed, batch.CRC_POSITION, crc)
    return sealed


def _with_section(section: bytes, codec: Codec = Codec.NONE, count: int = 1) -> bytearray:
    """A batch of `count` records whose section is `section`, right in everything else."""
    header = build_batch([(NOW, None, None, [])] * count)[:HEADER_SIZE]
    payload = compress(codec, section) if codec else section
    return _sealed(header + payload, [(ATTRIBUTES_POSITION, ">h", codec)])


def test_a_too_large_batch_is_refused_without_a_copy() -> None:
    """A request may have a hundred megabytes, and the event loop looks at it."""
    giant = bytearray(build_batch([(NOW, None, bytes(8 << 20), ())]))
    tracemalloc.start()
    try:
        _refused(giant, ErrorCode.MESSAGE_TOO_LARGE)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


# What is accepted


@pytest.mark.parametrize("codec", Codec)
def test_a_sound_batch_stays_in_its_buffer(codec: Codec) -> None:
    """The receive buffer itself is handed on, byte for byte, for the log to stamp."""
    data = bytearray(build_batch(CONTENT, codec=codec))
    original = bytes(data)
    result = _validate(memoryview(data))
    assert bytes(result.buffer) == original
    batch.stamp(result.buffer, 0, base_offset=900, leader_epoch=3)
    assert parse_header(data).base_offset == 900
    assert not result.rebuilt
    assert result.converted_records == 0
    assert result.record_count == 3
    assert result.size == len(data)


def test_result_names_the_latest_record() -> None:
    """The largest timestamp is not always the last one."""
    result = _validate(build_batch(CONTENT))
    assert result.max_timestamp == NOW - 5
    assert result.offset_of_max_timestamp == 1
    assert result.log_append_time == -1
    ((position, header),) = result.headers
    assert position == 0
    assert header == parse_header(result.buffer)


def test_read_only_data_is_copied() -> None:
    """Immutable bytes come back as a buffer that can be stamped."""
    data = build_batch(CONTENT)
    result = _validate(data)
    assert not memoryview(result.buffer).readonly
    assert bytes(result.buffer) == data


def test_idempotent_and_transactional_batches_pass() -> None:
    """Producer id, epoch and sequence are the log's to judge; here they need only be there."""
    data = build_batch(
        CONTENT, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True
    )
    result = _validate(data)
    ((_, header),) = result.headers
    assert header.is_transactional
    assert result.is_transactional
    assert not _validate(build_batch(CONTENT, producer_id=5, base_sequence=0)).is_transactional


@pytest.mark.parametrize("tail", range(1, HEADER_SIZE, 7))
def test_a_cut_second_batch_is_left_out(tail: int) -> None:
    """Bytes that are no whole batch behind the first are dropped, as Apache does."""
    data = build_batch(CONTENT)
    assert bytes(_validate(data + data[:tail]).buffer) == data


def test_a_wrong_max_timestamp_is_mended() -> None:
    """The time index relies on this field, so it is set from the records, with a new checksum."""
    data = stored_batch(CONTENT, max_timestamp=NOW + 10**9)
    result = _validate(data)
    ((_, header),) = result.headers
    assert header.max_timestamp == result.max_timestamp == NOW - 5
    batch.verify_crc(result.buffer, 0, header)


def test_records_without_timestamps() -> None:
    """-1 means none; such a batch has no latest record."""
    result = _validate(build_batch([(-1, b"k", b"v", [])]), timestamp_before_max_ms=1000)
    assert (result.max_timestamp, result.offset_of_max_timestamp) == (-1, -1)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_append_time_is_stamped(codec: Codec) -> None:
    """Type, time and checksum are set in place and the records' own times do not matter."""
    data = build_batch([(5, b"k", b"v", []), (2**60, b"k", b"v", [])], codec=codec)
    result = _validate(
        data,
        timestamp_type=TimestampType.APPEND,
        timestamp_before_max_ms=1,
        timestamp_after_max_ms=1,
    )
    ((_, header),) = result.headers
    batch.verify_crc(result.buffer, 0, header)
    assert header.timestamp_type is TimestampType.APPEND
    assert header.max_timestamp == result.max_timestamp == result.log_append_time == NOW
    assert result.offset_of_max_timestamp == 0
    assert {record.timestamp for record in records(result.buffer)} == {NOW}
    assert not result.rebuilt


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", Codec)
def test_compression_type_of_the_topic_wins(source: Codec, target: Codec) -> None:
    """A batch in another codec is rebuilt with everything but the codec as it was."""
    data = build_batch(
        CONTENT,
        codec=source,
        producer_id=8,
        producer_epoch=2,
        base_sequence=40,
        transactional=True,
    )
    result = _validate(data, target_codec=target)
    ((_, header),) = result.headers
    assert header.codec is target
    assert result.rebuilt is (source is not target)
    batch.verify_crc(result.buffer, 0, header)
    assert records(result.buffer) == records(data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 2, 40)
    assert header.is_transactional
    assert (result.max_timestamp, result.offset_of_max_timestamp) == (NOW - 5, 1)
    assert result.converted_records == 0


def test_compression_levels_of_the_topic_are_used() -> None:
    """compression.gzip.level and its like decide how a batch is recompressed."""
    content: list[RecordContent] = [
        (NOW, None, bytes(range(256)) * 40 + b"%d" % i, []) for i in range(9)
    ]
    data = build_batch(content)
    for codec, name in ((Codec.GZIP, "gzip"), (Codec.LZ4, "lz4"), (Codec.ZSTD, "zstd")):
        for level in (1, 12 if codec is Codec.LZ4 else 9):
            result = _validate(data, target_codec=codec, **{f"{name}_level": level})
            expected = build_batch(content, codec=codec, level=level)
            assert bytes(result.buffer) == expected


def test_format_2_in_an_old_request_passes() -> None:
    """Produce 2 with a modern batch is tolerated, as Apache tolerates it."""
    assert _validate(build_batch(CONTENT), request_version=2).record_count == 3


# What is refused: request, header, checksum


@pytest.mark.parametrize("data", [b"", b"\0" * 11, build_batch(CONTENT)[:-1]])
def test_a_request_without_a_whole_batch(data: bytes) -> None:
    """Nothing, or only part of a batch."""
    _refused(data, ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("end", range(0, HEADER_SIZE + 20, 3))
def test_every_truncation_is_refused(end: int) -> None:
    """However a batch is cut, no prefix of it is appended."""
    with pytest.raises(InvalidBatch):
        _validate(build_batch(CONTENT)[:end])


@pytest.mark.parametrize("length", [-1, 0, 13, 48])
def test_impossible_lengths(length: int) -> None:
    """A stated length below a header's is corrupt."""
    data = bytearray(build_batch(CONTENT))
    struct.pack_into(">i", data, 8, length)
    _refused(data, ErrorCode.CORRUPT_MESSAGE)


def test_unknown_magic() -> None:
    """A format from the future is corrupt here."""
    data = bytearray(build_batch(CONTENT))
    data[batch.MAGIC_POSITION] = 3
    _refused(data, ErrorCode.CORRUPT_MESSAGE)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_in_new_requests(magic: int) -> None:
    """Produce 3 and later take only format 2."""
    data = legacy.build_message_set([Record(0, NOW, b"k", b"v")], magic=magic)
    _refused(data, ErrorCode.INVALID_RECORD, request_version=3)


@pytest.mark.parametrize("version", [2, 3, 9])
def test_two_batches(version: int) -> None:
    """A partition's data is one batch."""
    data = build_batch(CONTENT)
    _refused(data + data, ErrorCode.INVALID_RECORD, request_version=version)


def test_zstd_before_produce_7() -> None:
    """Old requests cannot announce zstd."""
    data = build_batch(CONTENT, codec=Codec.ZSTD)
    _refused(data, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, request_version=6)
    assert _validate(data, request_version=7).record_count == 3


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_undefined_codecs(codec: int) -> None:
    """Numbers without a codec cannot be read by anybody."""
    data = _sealed(build_batch(CONTENT), [(ATTRIBUTES_POSITION, ">h", codec)])
    _refused(data, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def test_wrong_checksum() -> None:
    """A flipped bit anywhere behind the checksum is CORRUPT_MESSAGE, which producers retry."""
    data = build_batch(CONTENT)
    for position in range(ATTRIBUTES_POSITION, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        with pytest.raises(InvalidBatch) as caught:
            _validate(damaged)
        assert caught.value.code in (
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )


def test_size_limit_is_inclusive() -> None:
    """max.message.bytes counts the whole batch, header included."""
    data = build_batch(CONTENT)
    assert _validate(data, max_message_bytes=len(data)).record_count == 3
    _refused(data, ErrorCode.MESSAGE_TOO_LARGE, max_message_bytes=len(data) - 1)


def test_size_limit_holds_after_recompression() -> None:
    """A batch that fits only while compressed does not fit a topic that stores it plain."""
    data = build_batch([(NOW, b"k", bytes(5000), [])], codec=Codec.GZIP)
    assert _validate(data, max_message_bytes=1000).record_count == 1
    _refused(data, ErrorCode.MESSAGE_TOO_LARGE, max_message_bytes=1000, target_codec=Codec.NONE)


def test_base_offset_must_be_zero() -> None:
    """Clients do not choose offsets."""
    _refused(build_batch(CONTENT, base_offset=1), ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize(
    ("last_offset_delta", "count"), [(2, 2), (2, 4), (3, 3), (1, 3), (-1, 0), (2, -3), (-1, -1)]
)
def test_count_must_match_the_offsets(last_offset_delta: int, count: int) -> None:
    """As many records as offsets, and at least one."""
    edits = [(23, ">i", last_offset_delta), (57, ">i", count)]
    _refused(_sealed(build_batch(CONTENT), edits), ErrorCode.INVALID_RECORD)


def test_an_empty_batch() -> None:
    """No records, nothing to append."""
    _refused(build_batch([]), ErrorCode.INVALID_RECORD)


def test_control_batches() -> None:
    """Transaction markers come from coordinators only."""
    data = build_batch(
        [(NOW, b"\0\0\0\1", b"\0\0\0\0\0\0", [])],
        control=True,
        transactional=True,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
    )
    _refused(data, ErrorCode.INVALID_RECORD)


def test_a_producer_id_needs_a_sequence() -> None:
    """Without it, duplicates could not be told."""
    _refused(build_batch(CONTENT, producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD)


def test_a_transaction_needs_a_producer_id() -> None:
    """Without it, nobody could ever end the transaction."""
    _refused(build_batch(CONTENT, transactional=True), ErrorCode.INVALID_RECORD)


# What is refused: records


def test_keys_on_compacted_topics() -> None:
    """Every record without a key is named, the others are not."""
    content: list[RecordContent] = [(NOW, b"k" if i % 2 else None, b"v", []) for i in range(5)]
    assert _validate(build_batch(content)).record_count == 5
    refused = _refused(build_batch(content), ErrorCode.INVALID_RECORD, compact=True)
    assert [index for index, _ in refused.record_errors] == [0, 2, 4]
    assert all("key" in message for _, message in refused.record_errors)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_timestamps_out_of_bounds(codec: Codec) -> None:
    """Bounds are inclusive; each record beyond them is named."""
    times = [NOW - 1000, NOW - 1001, NOW + 50, NOW + 51, -1]
    data = build_batch([(time, b"k", b"v", []) for time in times], codec=codec)
    refused = _refused(
        data,
        ErrorCode.INVALID_TIMESTAMP,
        timestamp_before_max_ms=1000,
        timestamp_after_max_ms=50,
    )
    assert [index for index, _ in refused.record_errors] == [1, 3]


def test_one_bad_timestamp_decides_the_code() -> None:
    """With faults of both kinds the answer is INVALID_TIMESTAMP, and all are listed."""
    data = build_batch([(NOW, None, b"v", []), (NOW + 99, b"k", b"v", [])])
    refused = _refused(data, ErrorCode.INVALID_TIMESTAMP, compact=True, timestamp_after_max_ms=10)
    assert [index for index, _ in refused.record_errors] == [0, 1]


@pytest.mark.parametrize("kind", TimestampType)
def test_append_time_is_not_the_producers_to_claim(kind: TimestampType) -> None:
    """A client that sets the bit is refused, whatever the topic does with timestamps."""
    data = stored_batch(CONTENT, append_time=True, max_timestamp=NOW)
    refused = _refused(data, ErrorCode.INVALID_TIMESTAMP, timestamp_type=kind)
    assert len(refused.record_errors) == 3


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("deltas", [[1, 1, 2], [0, 2, 2], [0, 0, 2], [0, 1, 2**31 - 1]])
def test_offset_deltas_must_be_contiguous(codec: Codec, deltas: list[int]) -> None:
    """A right checksum over wrong offsets would put wrong offsets into the log."""
    data = stored_batch(CONTENT, codec=codec, offset_deltas=deltas, last_offset_delta=2)
    refused = _refused(data, ErrorCode.INVALID_RECORD)
    wrong = [index for index, delta in enumerate(deltas) if delta != index]
    assert [index for index, _ in refused.record_errors] == wrong


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize(
    "section",
    [
        b"",
        bytes([12, 0, 0, 0, 1, 1]),
        bytes([12, 0, 0, 0, 1, 1, 0, 0]),
        bytes([14, 0, 0, 0, 1, 1, 0]),
        bytes([12, 0, 0, 0, 9, 1, 0]),
        bytes([12, 0, 0, 0, 1, 1, 2]),
        bytes([12, 0, 0, 0, 1, 1, 1]),
        bytes([14, 0, 0, 0, 1, 1, 0, 0]),
        b"\xff\xff\xff\xff\xff\xff\xff",
    ],
)
def test_contents_that_are_no_records(codec: Codec, section: bytes) -> None:
    """Behind a right checksum and inside compression alike."""
    refused = _refused(_with_section(section, codec), ErrorCode.INVALID_RECORD)
    assert refused.record_errors == []


def test_more_or_fewer_records_than_stated() -> None:
    """The header's count is checked against what is there."""
    section = build_batch(CONTENT)[HEADER_SIZE:]
    for count in (2, 4):
        _refused(_with_section(section, count=count), ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_data_that_does_not_decompress(codec: Codec) -> None:
    """Sending it again would not help, so the code is one producers do not retry."""
    header = build_batch([(NOW, None, None, [])])[:HEADER_SIZE]
    data = _sealed(header + b"\xffgarbage" * 3, [(ATTRIBUTES_POSITION, ">h", codec)])
    _refused(data, ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_compressed_data_beyond_the_cap(codec: Codec) -> None:
    """A bomb is refused with the code that makes an honest producer split its batch."""
    data = build_batch([(NOW, b"k", bytes(1 << 20), [])], codec=codec)
    _refused(data, ErrorCode.MESSAGE_TOO_LARGE, decompressed_limit=(1 << 20) - 1)
    assert _validate(data, decompressed_limit=(1 << 20) + 100).record_count == 1


def test_the_cap_follows_the_message_size() -> None:
    """Topics with larger messages may have larger batches inside compression."""
    assert RULES.inflated_limit == 64 << 20
    assert ProduceRules(max_message_bytes=10 << 20).inflated_limit == 160 << 20


def test_the_list_of_refused_records_is_bounded() -> None:
    """A batch full of bad records is not answered with a larger response."""
    data = build_batch([(NOW, None, b"", [])] * 3000)
    refused = _refused(data, ErrorCode.INVALID_RECORD, compact=True)
    assert len(refused.record_errors) == RECORD_ERRORS_LIMIT
    assert "1000 or more" in refused.message


# Formats 0 and 1

OLD = [
    Record(0, NOW - 9, b"a", b"1"),
    Record(1, NOW - 3, None, b"2"),
    Record(2, NOW - 7, b"c", None),
]
OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]


def _old(magic: int, codec: Codec = Codec.NONE, **options: TimestampType) -> bytes:
    return legacy.build_message_set(OLD, magic=magic, codec=codec, **options)


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_become_one_batch(magic: int, codec: Codec) -> None:
    """Format 2 with the producer's codec; format 0 has no timestamps to keep."""
    result = _validate(_old(magic, codec), request_version=magic + 1)
    ((_, header),) = result.headers
    batch.verify_crc(result.buffer, 0, header)
    assert (header.codec, header.record_count, header.base_offset) == (codec, 3, 0)
    assert result.rebuilt
    assert result.converted_records == 3
    found = records(result.buffer)
    assert [(r.offset, r.key, r.value) for r in found] == [(r.offset, r.key, r.value) for r in OLD]
    assert [r.timestamp for r in found] == [r.timestamp if magic else -1 for r in OLD]
    assert (result.max_timestamp, result.offset_of_max_timestamp) == (
        (NOW - 3, 1) if magic else (-1, -1)
    )


def test_old_messages_take_the_topics_codec_and_time() -> None:
    """Conversion, recompression and append time work together."""
    result = _validate(
        _old(1, Codec.LZ4),
        request_version=2,
        target_codec=Codec.ZSTD,
        timestamp_type=TimestampType.APPEND,
    )
    ((_, header),) = result.headers
    batch.verify_crc(result.buffer, 0, header)
    assert header.codec is Codec.ZSTD
    assert {record.timestamp for record in records(result.buffer)} == {NOW}
    assert result.log_append_time == NOW


def test_old_messages_are_checked_record_by_record() -> None:
    """Keys and timestamps obey the topic's rules in any format."""
    refused = _refused(_old(1), ErrorCode.INVALID_RECORD, request_version=2, compact=True)
    assert [index for index, _ in refused.record_errors] == [1]
    refused = _refused(
        _old(1), ErrorCode.INVALID_TIMESTAMP, request_version=2, timestamp_before_max_ms=8
    )
    assert [index for index, _ in refused.record_errors] == [0]
    assert _validate(_old(0), request_version=1, timestamp_before_max_ms=0).record_count == 3


def test_old_messages_may_not_claim_append_time() -> None:
    """The timestamp type bit of format 1 is the broker's too."""
    data = _old(1, timestamp_type=TimestampType.APPEND)
    _refused(data, ErrorCode.INVALID_TIMESTAMP, request_version=2)


def test_old_checksums() -> None:
    """Both the entry's and, inside a wrapper, each inner message's."""
    for data in (_old(1), _old(1, Codec.GZIP)):
        damaged = bytearray(data)
        damaged[-1] ^= 1
        _refused(damaged, ErrorCode.CORRUPT_MESSAGE, request_version=2)
    inner = bytearray(_old(1))
    inner[-1] ^= 1
    wrapper = legacy.Message(2, NOW, None, compress(Codec.GZIP, inner), 1, Codec.GZIP)
    _refused(legacy.encode_message(wrapper), ErrorCode.CORRUPT_MESSAGE, request_version=2)


def test_a_wrapper_must_be_alone() -> None:
    """Offsets could not be assigned otherwise."""
    data = _old(1, Codec.GZIP) + _old(1)
    _refused(data, ErrorCode.INVALID_RECORD, request_version=2)


@pytest.mark.parametrize("second", [_old(1), build_batch(CONTENT)])
def test_formats_may_not_be_mixed(second: bytes) -> None:
    """One request, one format."""
    _refused(_old(0) + second, ErrorCode.INVALID_RECORD, request_version=2)


def test_zstd_has_no_old_form() -> None:
    """The codec came with format 2."""
    wrapper = legacy.Message(0, NOW, None, compress(Codec.ZSTD, _old(1)), 1, Codec.ZSTD)
    _refused(
        legacy.encode_message(wrapper),
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        request_version=2,
    )


def test_old_wrappers_are_capped() -> None:
    """Bombs in the old format are refused as in the new."""
    big = legacy.build_message_set(
        [Record(0, NOW, None, bytes(1 << 20))], magic=1, codec=Codec.GZIP
    )
    _refused(big, ErrorCode.MESSAGE_TOO_LARGE, request_version=2, decompressed_limit=1 << 19)
    wrapper = legacy.Message(0, NOW, None, b"\x1f\x8bgarbage", 1, Codec.GZIP)
    _refused(legacy.encode_message(wrapper), ErrorCode.INVALID_RECORD, request_version=2)


def test_old_size_limits() -> None:
    """Each entry as sent, and the batch they become."""
    one = len(_old(0)) // 3 + 20
    _refused(_old(0), ErrorCode.MESSAGE_TOO_LARGE, request_version=2, max_message_bytes=14)
    _refused(_old(0), ErrorCode.MESSAGE_TOO_LARGE, request_version=2, max_message_bytes=one)


# The short way and the long way


def _verdict(data: bytes, rules: ProduceRules) -> tuple[object, ...]:
    """All there is to say of a validation: the refusal, or everything the log will go by."""
    try:
        result = validate_produce(bytearray(data), rules=rules, now_ms=NOW)
    except InvalidBatch as error:
        return error.code, error.message, error.record_errors
    latest = (result.max_timestamp, result.offset_of_max_timestamp, result.log_append_time)
    return bytes(result.buffer), result.headers, latest, result.record_count, result.rebuilt


@st.composite
def _nearly_usual(draw: st.DrawFn) -> bytes:
    """A batch with up to two bytes of it changed; its length and checksum are right, mostly."""
    count = draw(st.integers(1, 4))
    content: list[RecordContent] = [
        (
            draw(st.sampled_from([NOW, NOW - 1, NOW + 10, -1, 0])),
            draw(st.sampled_from([None, b"", b"key"])),
            draw(st.sampled_from([None, b"", b"value" * 30])),
            draw(st.sampled_from([(), (("h", b"x"), ("n", None))])),
        )
        for _ in range(count)
    ]
    producer_id = draw(st.sampled_from([-1, -1, 0, 7]))
    data = bytearray(
        build_batch(
            content,
            producer_id=producer_id,
            producer_epoch=draw(st.sampled_from([-1, 0])),
            base_sequence=draw(st.sampled_from([-1, 0, 5])),
            transactional=draw(st.sampled_from([False, False, True])),
            codec=draw(st.sampled_from([Codec.NONE, Codec.NONE, *list(Codec)])),
        )
    )
    for _ in range(draw(st.integers(0, 2))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    if draw(st.booleans()):
        data = _sealed(data)
    return bytes(data) + draw(st.sampled_from([b"", b"", b"", b"\0", bytes(data)]))


@given(
    data=_nearly_usual(),
    compact=st.booleans(),
    kind=st.sampled_from(list(TimestampType)),
    before=st.sampled_from([LARGEST, 0, 1]),
    after=st.sampled_from([LARGEST, 0, 10]),
    target=st.sampled_from([None, None, Codec.NONE, Codec.ZSTD]),
    limit=st.sampled_from([1 << 20, 1 << 20, 150]),
    version=st.sampled_from([9, 9, 6]),
)
def test_the_short_way_finds_what_the_long_way_finds(
    data: bytes,
    compact: bool,
    kind: TimestampType,
    before: int,
    after: int,
    target: Codec | None,
    limit: int,
    version: int,
) -> None:
    """Usual batches are judged mostly by compiled code, with the verdict of the full checks."""
    rules = ProduceRules(
        compact=compact,
        timestamp_type=kind,
        timestamp_before_max_ms=before,
        timestamp_after_max_ms=after,
        target_codec=target,
        max_message_bytes=limit,
        request_version=version,
    )
    short = _verdict(data, rules)
    plain, compressed = mock.Mock(return_value=(0, 0, 0)), mock.Mock(return_value=0)
    with mock.patch.multiple(validator, plain_batch=plain, compressed_head=compressed):
        assert short == _verdict(data, rules)


@pytest.mark.parametrize(
    ("codec", "target"), [(Codec.NONE, None), (Codec.NONE, Codec.NONE), (Codec.LZ4, None)]
)
def test_usual_batches_take_the_short_way(codec: Codec, target: Codec | None) -> None:
    """For what producers usually send the long way is not even begun."""
    data = build_batch(CONTENT, codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)
    with mock.patch.object(validator, "_outline", side_effect=AssertionError):
        assert _validate(data, target_codec=target).record_count == 3


@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 5])
def test_a_walk_in_stages_finds_what_a_walk_finds(at_once: int) -> None:
    """The latest record, refused ones on either side of a stage's end, and a section cut short."""
    times = [NOW, NOW + 3, NOW + 2, NOW + 3, NOW - 5]
    sound = build_batch([(time, b"k", b"v", ()) for time in times], codec=Codec.LZ4)
    keyless = build_batch([(time, None, b"v", ()) for time in times], codec=Codec.LZ4)
    section = records_section(sound, 0, parse_header(sound))
    with mock.patch.object(validator, "_WALKED_AT_ONCE", at_once):
        found = _validate(sound)
        assert (found.max_timestamp, found.offset_of_max_timestamp) == (NOW + 3, 1)
        refused = _refused(keyless, ErrorCode.INVALID_RECORD, compact=True)
        assert [index for index, _ in refused.record_errors] == [0, 1, 2, 3, 4]
        for wrong in (section[:-1], section + b"\0"):
            _refused(_with_section(wrong, Codec.LZ4, count=5), ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_long_decompression_is_left_to_a_thread(codec: Codec) -> None:
    """The event loop learns that there is too much to decompress, and a thread does all of it."""
    large = build_batch([(NOW, None, bytes(2 << 20), ())], codec=codec)
    with pytest.raises(TooMuchAtOnce):
        validate_produce(large, rules=RULES, now_ms=NOW, at_once=validator.AT_ONCE_BYTES)
    assert _validate(large).record_count == 1


@pytest.mark.parametrize("claim", [10, 2 << 20])
def test_the_size_field_of_gzip_is_not_trusted(claim: int) -> None:
    """If it says much it is not begun, if little it ends there; a thread finds that it lies."""
    large = build_batch([(NOW, None, bytes((2 << 20) + 9), ())], codec=Codec.GZIP)
    section = b"no gzip" if claim > validator.AT_ONCE_BYTES else large[HEADER_SIZE:-4]
    lying = _sealed(large[:HEADER_SIZE] + section + claim.to_bytes(4, "little"))
    with pytest.raises(TooMuchAtOnce):
        validate_produce(lying, rules=RULES, now_ms=NOW, at_once=validator.AT_ONCE_BYTES)
    _refused(lying, ErrorCode.INVALID_RECORD)
