"""What a leader checks before it appends what a client produced to one partition.

The rules are those of Apache's ProduceRequest.validateRecords, UnifiedLog's
analyzeAndValidateRecords and LogValidator (3.9), in this order, with their error codes:

1. Produce 3 and later carry exactly one batch of format 2 (INVALID_RECORD), and zstd only from
   Produce 7 on (UNSUPPORTED_COMPRESSION_TYPE). Older requests carry formats 0 to 2.
2. The batch's base offset is 0 (INVALID_RECORD), its size within max.message.bytes
   (MESSAGE_TOO_LARGE), its checksum right (CORRUPT_MESSAGE).
3. The header is one a client may write: as many records as offsets, no control batch, a sequence
   where there is a producer id, a producer id where there is a transaction (INVALID_RECORD).
4. The records are records, and each has a contiguous offset, a key if the topic is compacted
   (INVALID_RECORD) and a timestamp within the topic's bounds (INVALID_TIMESTAMP). Refused records
   are listed one by one, which producers since KIP-467 report per record.

Where we are stricter than Apache, the stored log is at stake: offset deltas that are not contiguous
are refused rather than rewritten (compressed) or stored (uncompressed); so are lengths below -1,
which Apache reads as null, a batch that claims append time, whatever the topic's timestamp type,
and a transaction without a producer id. Compressed records may not grow beyond a cap. Content that
does not decompress behind a right checksum is INVALID_RECORD, where Apache answers an unknown
server error: sending it again would not help.

Codes and lists differ from Apache's where a batch has several faults, because the order of checks
does: claimed append time and the header are judged before the records, and a record that cannot be
read ends the search for others. Apache answers some such batches with an unknown server error.

The result is always one batch of format 2, in the receive buffer itself unless it had to be built
again: to convert an old format, or because the topic's compression.type is another codec. Offsets
and the leader epoch are the log's to stamp.
"""

from dataclasses import dataclass, field
from typing import Final

from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.records import legacy
from barnabas_kafka.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE,
    MAGIC_POSITION,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    CorruptBatch,
    TimestampType,
    parse_header,
    records_section,
    stamp_timestamp,
    verify_crc,
)
from barnabas_kafka.records.builder import RecordContent, build_batch, recode_batch
from barnabas_kafka.records.compression import (
    Codec,
    CompressionError,
    DecompressedTooLarge,
    claimed_by_gzip,
)
from barnabas_kafka.records.crc import crc32c
from barnabas_kafka.records.pages import release
from barnabas_kafka.records.walk import (
    BAD_FIELD,
    BAD_HEADER_COUNT,
    BAD_HEADER_KEY,
    BAD_LENGTH,
    BAD_NUMBER,
    CUT_SHORT,
    KEY_MISSING,
    LARGEST,
    LENGTH_MISMATCH,
    NO_TIMESTAMP,
    OFFSET_NOT_CONTIGUOUS,
    OK,
    SMALLEST,
    STRUCTURAL,
    TIMESTAMP_OUT_OF_BOUNDS,
    TIMESTAMP_OVERFLOW,
    TRAILING_BYTES,
    compressed_head,
    plain_batch,
    walk,
)

#: What a compressed batch may grow to at least, and as a multiple of max.message.bytes. Text
#: compresses to a tenth, rarely to a fiftieth; a producer splits its batch on MESSAGE_TOO_LARGE.
DECOMPRESSED_FLOOR: Final = 64 * 1024 * 1024
DECOMPRESSED_RATIO: Final = 16

#: How many refused records one answer lists, and the leader looks for. A megabyte of keyless
#: records would otherwise take seconds and be answered with tens of megabytes of complaints;
#: producers fail the rest of the batch anyway.
RECORD_ERRORS_LIMIT: Final = 1000

#: How many bytes of records may be validated while others wait: half a millisecond.
#: Gzip takes so much longer, and so do old formats, which are read message by message.
AT_ONCE_BYTES: Final = 1024 * 1024
_GZIP_SLOWER: Final = 4
_OLD_FORMATS_SLOWER: Final = 16

#: How many records are walked before another thread may run, since compiled code lets none in
#: between: a sixth of a millisecond. A batch of 64 MiB may hold nine million.
_WALKED_AT_ONCE: Final = 4_000

_ZSTD_SINCE: Final = 7
_ONE_BATCH_SINCE: Final = 3

_FAULTS: Final[dict[int, str]] = {
    CUT_SHORT: "the records end in the middle of one",
    BAD_NUMBER: "a number is longer than it may be",
    BAD_LENGTH: "its length is not within the batch",
    BAD_FIELD: "a key, value or header value does not fit into it",
    BAD_HEADER_COUNT: "its number of headers is not possible",
    BAD_HEADER_KEY: "a header key is null or does not fit into it",
    LENGTH_MISMATCH: "its length does not match its content",
    TIMESTAMP_OVERFLOW: "its timestamp is no 64-bit number",
    TRAILING_BYTES: "bytes follow the last record",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRules:
    """What a topic and a request version ask of produced batches. Times are in milliseconds.

    `target_codec` is the topic's compression.type: None keeps what the producer chose. Levels are
    on Kafka's scales, None being the codec's default. `decompressed_limit` caps what a compressed
    batch may grow to; None derives it from the size a batch may have.
    """

    compact: bool = False
    max_message_bytes: int = 1024 * 1024 + 12
    timestamp_type: TimestampType = TimestampType.CREATE
    timestamp_before_max_ms: int = LARGEST
    timestamp_after_max_ms: int = LARGEST
    target_codec: Codec | None = None
    request_version: int = 9
    gzip_level: int | None = None
    lz4_level: int | None = None
    zstd_level: int | None = None
    decompressed_limit: int | None = None
    #: Whether an uncompressed batch cannot be stored as it comes. Derived.
    rebuilds_plain: bool = field(init=False)

    def __post_init__(self) -> None:
        rebuilds = self.timestamp_type is TimestampType.APPEND or self.target_codec not in (
            None,
            Codec.NONE,
        )
        object.__setattr__(self, "rebuilds_plain", rebuilds)

    @property
    def inflated_limit(self) -> int:
        """What a compressed batch may grow to: the limit set, or one that suits the batch size."""
        if self.decompressed_limit is not None:
            return self.decompressed_limit
        return max(DECOMPRESSED_FLOOR, DECOMPRESSED_RATIO * self.max_message_bytes)

    def level(self, codec: Codec) -> int | None:
        """The compression level the topic sets for `codec`."""
        if codec is Codec.GZIP:
            return self.gzip_level
        if codec is Codec.LZ4:
            return self.lz4_level
        return self.zstd_level if codec is Codec.ZSTD else None


@dataclass(slots=True)
class ValidatedBatches:
    """Batches fit to be appended, waiting for their offsets.

    `buffer` holds whole batches of format 2 from its first to its last byte and is writable: the
    log stamps base offset and leader epoch into it, at the positions in `headers`. Offsets here
    count from 0, the first record.
    """

    buffer: bytearray | memoryview
    headers: list[tuple[int, BatchHeader]]
    max_timestamp: int
    #: The first record with the largest timestamp, -1 if no record has a timestamp.
    offset_of_max_timestamp: int
    record_count: int
    #: The time stamped into the batches, -1 if they keep the producer's.
    log_append_time: int = -1
    #: Whether the batch was built again, and how many records that converted from an old format.
    rebuilt: bool = False
    converted_records: int = 0
    #: How much larger the batch is without its compression; None where it is unknown.
    saved_bytes: int | None = 0

    @property
    def is_transactional(self) -> bool:
        """Whether a batch belongs to a transaction."""
        for _, header in self.headers:  # noqa: SIM110 (a generator costs more than the loop)
            if header.attributes & TRANSACTIONAL_FLAG:
                return True
        return False

    @property
    def size(self) -> int:
        """Bytes to append."""
        return len(self.buffer)


class InvalidBatch(KafkaError):  # noqa: N818 (what it is, not how it is thrown)
    """A refused batch, with the (index, message) of each refused record where there are any."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        record_errors: list[tuple[int, str]] | None = None,
    ) -> None:
        super().__init__(code, message)
        self.record_errors: list[tuple[int, str]] = record_errors or []


class TooMuchAtOnce(Exception):  # noqa: N818
    """The batch may be sound, but looking at it would keep others waiting: do it elsewhere."""


class _Complaints:
    """The refused records of a batch, up to as many as an answer lists."""

    __slots__ = ("about_timestamps", "errors")

    def __init__(self) -> None:
        self.errors: list[tuple[int, str]] = []
        self.about_timestamps = False

    @property
    def are_enough(self) -> bool:
        return len(self.errors) >= RECORD_ERRORS_LIMIT

    def add(self, index: int, fault: int, message: str) -> None:
        self.about_timestamps |= fault == TIMESTAMP_OUT_OF_BOUNDS
        if not self.are_enough:
            self.errors.append((index, message))

    def raise_if_any(self) -> None:
        if not self.errors:
            return
        code = ErrorCode.INVALID_TIMESTAMP if self.about_timestamps else ErrorCode.INVALID_RECORD
        index, reason = self.errors[0]
        count = f"{len(self.errors)} or more" if self.are_enough else str(len(self.errors))
        raise InvalidBatch(code, f"{count} refused records, first {index}: {reason}", self.errors)


def validate_produce(
    data: bytes | bytearray | memoryview,
    *,
    rules: ProduceRules,
    now_ms: int,
    at_once: int = LARGEST,
) -> ValidatedBatches:
    """Check one partition's records of a Produce request; raises InvalidBatch.

    Raises TooMuchAtOnce instead of decompressing, recompressing or converting more than about
    `at_once` bytes; what was done until then was little.

    `data` is used in place if it is writable and nothing has to be rebuilt. Bytes of a batch that
    is cut short behind the first one are left out, as Apache does.
    """
    view = memoryview(data)
    if view.readonly:
        view = memoryview(bytearray(view))
    plain = _validate_plain(view, rules, now_ms)
    if plain is not None:
        return plain
    usual = _usual_header(view, rules)
    if usual is not None:
        return _validate_records(view, *usual, rules=rules, now_ms=now_ms, at_once=at_once)
    try:
        batches = _outline(view)
    except CorruptBatch as error:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if not batches:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "the request holds no whole batch")
    _, size, magic = batches[0]
    if magic != 2:
        if rules.request_version >= _ONE_BATCH_SINCE:
            raise InvalidBatch(
                ErrorCode.INVALID_RECORD,
                f"Produce {rules.request_version} takes batches of format 2, not {magic}",
            )
        if len(view) > at_once // _OLD_FORMATS_SLOWER:
            raise TooMuchAtOnce
        return _validate_legacy(view, batches, rules, now_ms, at_once=at_once)
    header, codec = _check_header(view[:size], rules, alone=len(batches) == 1)
    return _validate_records(
        view[:size], header, codec, rules=rules, now_ms=now_ms, at_once=at_once
    )


def _outline(view: memoryview) -> list[tuple[int, int, int]]:
    """The (position, size, magic) of each whole batch; a request normally holds just one."""
    size = legacy.batch_size(view)
    if size == len(view):
        return [(0, size, view[MAGIC_POSITION])]
    return list(legacy.batch_positions(view))


# Format 2


def _validate_plain(view: memoryview, rules: ProduceRules, now_ms: int) -> ValidatedBatches | None:
    """The answer for the batches that nearly all producers send, found at a look; else None.

    Everything the rest of this module checks is checked here as well, most of it in one pass of
    compiled code. What does not pass is validated again, slowly: it may be sound in another way,
    and if it is not, that finds the error.
    """
    if rules.rebuilds_plain or not HEADER_SIZE <= len(view) <= rules.max_message_bytes:
        return None
    if view[ATTRIBUTES_POSITION + 1]:  # Compressed, mostly: not worth the copy.
        return None
    newest = now_ms + rules.timestamp_after_max_ms
    data = bytes(view)
    count, latest, latest_index = plain_batch(
        data,
        0,
        len(data),
        largest=rules.max_message_bytes,
        oldest=now_ms - rules.timestamp_before_max_ms,
        newest=newest if newest < LARGEST else LARGEST,
        key_required=rules.compact,
    )
    if not count:
        return None
    header = BatchHeader._make(HEADER.unpack_from(data))
    if crc32c(memoryview(data)[ATTRIBUTES_POSITION:]) != header.crc:
        return None
    return ValidatedBatches(view, [(0, header)], latest, latest_index, count)


def _usual_header(view: memoryview, rules: ProduceRules) -> tuple[BatchHeader, Codec] | None:
    """The sound header of the compressed batches that nearly all producers send; else None.

    It passes what `_check_header` checks, most of it in compiled code.
    """
    head = bytes(view[:HEADER_SIZE])
    if not compressed_head(head, len(view)) or len(view) > rules.max_message_bytes:
        return None
    header = BatchHeader._make(HEADER.unpack_from(head))
    codec = header.codec
    if codec is Codec.ZSTD and rules.request_version < _ZSTD_SINCE:
        return None
    return (header, codec) if crc32c(view[ATTRIBUTES_POSITION:]) == header.crc else None


def _section(view: memoryview, header: BatchHeader, rules: ProduceRules, at_once: int) -> bytes:
    """The records of a batch, decompressed."""
    limit = rules.inflated_limit
    if header.codec is Codec.GZIP:
        at_once //= _GZIP_SLOWER
        if at_once < limit and claimed_by_gzip(view) > at_once:
            raise TooMuchAtOnce
    try:
        section = records_section(view, 0, header, limit=min(limit, at_once))
    except DecompressedTooLarge as error:
        if at_once < limit:
            raise TooMuchAtOnce from error
        raise InvalidBatch(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except CompressionError as error:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, str(error)) from error
    if len(section) > at_once:
        raise TooMuchAtOnce
    return section


def _validate_records(
    view: memoryview,
    header: BatchHeader,
    codec: Codec,
    *,
    rules: ProduceRules,
    now_ms: int,
    at_once: int,
) -> ValidatedBatches:
    """Check the records of a batch whose header has passed, and code them as the topic asks."""
    section = _section(view, header, rules, at_once)
    try:
        latest, latest_index = _check_records(section, header, rules, now_ms)
        if rules.target_codec is not None and rules.target_codec is not codec:
            target = rules.target_codec
            buffer = recode_batch(header, section, target, level=rules.level(target))
            _check_size(len(buffer), rules)
            header = parse_header(buffer)
            found = _stamped(buffer, header, rules, (latest, latest_index, now_ms), rebuilt=True)
        else:
            found = _stamped(view, header, rules, (latest, latest_index, now_ms))
        found.saved_bytes = HEADER_SIZE + len(section) - found.size
        return found
    finally:
        release(section)


def _check_header(
    view: memoryview, rules: ProduceRules, *, alone: bool
) -> tuple[BatchHeader, Codec]:
    try:
        header = parse_header(view)
        codec_number = header.attributes & 0x07
        if codec_number == Codec.ZSTD and rules.request_version < _ZSTD_SINCE:
            raise InvalidBatch(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"zstd needs Produce {_ZSTD_SINCE}, this is {rules.request_version}",
            )
        if not alone:
            raise InvalidBatch(ErrorCode.INVALID_RECORD, "more than one batch for a partition")
        if header.base_offset != 0:
            raise InvalidBatch(
                ErrorCode.INVALID_RECORD, f"the base offset is {header.base_offset}, not 0"
            )
        _check_size(header.size, rules)
        verify_crc(view, 0, header)
    except CorruptBatch as error:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if codec_number > Codec.ZSTD:
        raise InvalidBatch(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {codec_number} does not exist"
        )
    reason = _header_fault(header)
    if reason:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, reason)
    return header, Codec(codec_number)


def _check_size(size: int, rules: ProduceRules) -> None:
    if size > rules.max_message_bytes:
        raise InvalidBatch(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes where {rules.max_message_bytes} are allowed",
        )


def _header_fault(header: BatchHeader) -> str | None:
    """What a client may not write in a header, or None."""
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        return (
            f"{header.record_count} records do not span the offsets 0 to {header.last_offset_delta}"
        )
    if header.is_control:
        return "clients may not write control batches"
    if header.has_producer_id and header.base_sequence < 0:
        return f"producer {header.producer_id} gives the sequence {header.base_sequence}"
    if header.is_transactional and not header.has_producer_id:
        return "a transactional batch without a producer id"
    return None


def _check_records(
    section: bytes, header: BatchHeader, rules: ProduceRules, now_ms: int
) -> tuple[int, int]:
    """Walk the records; returns the latest timestamp and the index of the first to bear it."""
    complaints = _Complaints()
    if header.timestamp_type is TimestampType.APPEND:
        for index in range(min(header.record_count, RECORD_ERRORS_LIMIT)):
            complaints.add(index, TIMESTAMP_OUT_OF_BOUNDS, "append time is the broker's to set")
        complaints.raise_if_any()
    oldest, newest = _bounds(rules, now_ms)
    position = 0
    index = 0
    latest, latest_index = NO_TIMESTAMP, -1
    while True:
        stop = min(header.record_count, index + _WALKED_AT_ONCE)
        fault, index, position, newer, newer_index = walk(
            section,
            position,
            index=index,
            count=stop,
            base_timestamp=header.base_timestamp,
            oldest=oldest,
            newest=newest,
            key_required=rules.compact,
        )
        if newer > latest:
            latest, latest_index = newer, newer_index
        if index == stop < header.record_count and fault in (OK, TRAILING_BYTES):
            continue
        if fault == OK:
            complaints.raise_if_any()
            return latest, latest_index
        if fault <= STRUCTURAL:
            raise InvalidBatch(ErrorCode.INVALID_RECORD, f"record {index}: {_FAULTS[fault]}")
        complaints.add(index, fault, _record_fault(fault, oldest, newest))
        if complaints.are_enough:
            complaints.raise_if_any()
        index += 1


def _bounds(rules: ProduceRules, now_ms: int) -> tuple[int, int]:
    """The timestamps the topic takes; append time replaces them all."""
    if rules.timestamp_type is TimestampType.APPEND:
        return SMALLEST, LARGEST
    return (
        max(SMALLEST, now_ms - rules.timestamp_before_max_ms),
        min(LARGEST, now_ms + rules.timestamp_after_max_ms),
    )


def _record_fault(fault: int, oldest: int, newest: int) -> str:
    if fault == OFFSET_NOT_CONTIGUOUS:
        return "the offset does not follow the one before"
    if fault == KEY_MISSING:
        return "a compacted topic takes no record without a key"
    return f"the timestamp is not within {oldest} to {newest}"


def _stamped(
    buffer: bytearray | memoryview,
    header: BatchHeader,
    rules: ProduceRules,
    times: tuple[int, int, int],
    *,
    rebuilt: bool = False,
    converted_records: int = 0,
) -> ValidatedBatches:
    """Give the batch the topic's timestamp type and a true max timestamp, if it lacks them.

    `times` are the latest timestamp, the index of the first record that bears it, and now.
    """
    latest, latest_index, now_ms = times
    append_time = rules.timestamp_type is TimestampType.APPEND
    if append_time:
        latest, latest_index = now_ms, 0
    if append_time or header.max_timestamp != latest:
        # Kafka's time index is built from this field, so a producer's word for it is not enough.
        stamp_timestamp(buffer, 0, rules.timestamp_type, latest)
        header = parse_header(buffer)
    return ValidatedBatches(
        buffer=buffer,
        headers=[(0, header)],
        max_timestamp=latest,
        offset_of_max_timestamp=latest_index,
        record_count=header.record_count,
        log_append_time=now_ms if append_time else -1,
        rebuilt=rebuilt,
        converted_records=converted_records,
    )


# Formats 0 and 1


def _validate_legacy(
    view: memoryview,
    batches: list[tuple[int, int, int]],
    rules: ProduceRules,
    now_ms: int,
    *,
    at_once: int,
) -> ValidatedBatches:
    """Check a message set and build the one batch of format 2 it becomes."""
    magic = batches[0][2]
    entries: list[legacy.Message] = []
    for position, size, entry_magic in batches:
        if entry_magic != magic:
            raise InvalidBatch(
                ErrorCode.INVALID_RECORD, f"formats {magic} and {entry_magic} in one request"
            )
        _check_size(size, rules)
        try:
            entries.append(legacy.parse_message(view, position, size))
        except CorruptBatch as error:
            raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    source, messages = _open(entries, rules, at_once // _OLD_FORMATS_SLOWER)
    latest, latest_index = _check_messages(messages, rules, now_ms)
    contents: list[RecordContent] = [
        (message.timestamp, message.key, message.value, ()) for message in messages
    ]
    target = source if rules.target_codec is None else rules.target_codec
    buffer = bytearray(build_batch(contents, codec=target, level=rules.level(target)))
    _check_size(len(buffer), rules)
    found = _stamped(
        buffer,
        parse_header(buffer),
        rules,
        (latest, latest_index, now_ms),
        rebuilt=True,
        converted_records=len(messages),
    )
    found.saved_bytes = 0 if target is Codec.NONE else None
    return found


def _open(
    entries: list[legacy.Message], rules: ProduceRules, at_once: int
) -> tuple[Codec, list[legacy.Message]]:
    """The codec of the message set and the messages in it. A wrapper must be alone."""
    try:
        codecs = [entry.codec for entry in entries]
    except CorruptBatch as error:
        raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error
    source = max(codecs)
    if source is Codec.NONE:
        return source, entries
    if len(entries) > 1:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "a compressed message has neighbours")
    try:
        limit = rules.inflated_limit
        return source, legacy.open_wrapper(entries[0], limit=min(limit, at_once))
    except DecompressedTooLarge as error:
        if at_once < limit:
            raise TooMuchAtOnce from error
        raise InvalidBatch(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except CompressionError as error:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, str(error)) from error
    except CorruptBatch as error:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _check_messages(
    messages: list[legacy.Message], rules: ProduceRules, now_ms: int
) -> tuple[int, int]:
    """The rules of step 4 for old messages; relative offsets are not checked, some err there."""
    complaints = _Complaints()
    oldest, newest = _bounds(rules, now_ms)
    latest, latest_index = NO_TIMESTAMP, -1
    for index, message in enumerate(messages):
        timestamp = message.timestamp
        if rules.compact and message.key is None:
            complaints.add(index, KEY_MISSING, _record_fault(KEY_MISSING, oldest, newest))
        elif message.timestamp_type is TimestampType.APPEND:
            complaints.add(index, TIMESTAMP_OUT_OF_BOUNDS, "append time is the broker's to set")
        elif timestamp != NO_TIMESTAMP and not oldest <= timestamp <= newest:
            fault = TIMESTAMP_OUT_OF_BOUNDS
            complaints.add(index, fault, _record_fault(fault, oldest, newest))
        elif timestamp > latest:
            latest, latest_index = timestamp, index
    complaints.raise_if_any()
    return latest, latest_index
