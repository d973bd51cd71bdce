"""Record batches of format 2: layout, header, checksum, and stamping in place.

A log, a Produce request and a Fetch response all hold the same bytes: batches one after another.

======  ====  ====================  =============================================================
offset  size  field                 meaning
======  ====  ====================  =============================================================
0       8     base offset           of the first record; the leader stamps it
8       4     batch length          bytes behind this field
12      4     leader epoch          of the leader that appended the batch; stamped too
16      1     magic                 2
17      4     CRC                   CRC-32C over everything from the attributes to the end
21      2     attributes            bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control,
                                    6 the base timestamp is a delete horizon (KIP-534)
23      4     last offset delta     last offset = base offset + this, even after compaction
27      8     base timestamp        record timestamps are differences to it
35      8     max timestamp         largest of the records, or the append time (bit 3)
43      8     producer id           -1: not idempotent
51      2     producer epoch
53      4     base sequence         of the first record
57      4     record count
61            records               compressed as a whole by the codec of bits 0-2
======  ====  ====================  =============================================================

All integers are big-endian. Base offset and leader epoch lie outside the checksum on purpose: the
leader writes them into the receive buffer and never touches, copies or re-checksums the rest.

A record is, with zigzag varints (`v`): length `v`, attributes int8, timestamp delta `v`, offset
delta `v`, key length `v` (-1 null) and key, value length `v` and value, header count `v`, and per
header key length `v`, key, value length `v`, value. See KIP-98 for where it comes from.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from barnabas_kafka.records.compression import DEFAULT_LIMIT, Codec, CompressionError, decompress
from barnabas_kafka.records.crc import crc32c

HEADER_SIZE = 61
#: Base offset and batch length: what the length field does not count.
LOG_OVERHEAD = 12
LEADER_EPOCH_POSITION = 12
CRC_POSITION = 17
#: Where the checksummed part begins.
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35
MAGIC_POSITION = 16

CODEC_MASK = 0x07
APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

HEADER = struct.Struct(">qiibIhiqqqhii")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_OFFSET_AND_LENGTH = struct.Struct(">qi")

_LARGEST_SEQUENCE = 0x7FFFFFFF

# Looking up a member by position costs a fifth of calling the enum, and every batch asks.
_CODECS = tuple(Codec)


class CorruptBatch(ValueError):  # noqa: N818
    """Bytes that are no record batch: cut short, wrong lengths, magic, checksum or structure."""


class TimestampType(IntEnum):
    """Whose clock the timestamps of a batch come from (attribute bit 3)."""

    CREATE = 0
    APPEND = 1


class BatchHeader(NamedTuple):
    """The fixed part of a batch, in wire order."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def codec(self) -> Codec:
        """The codec of the records; raises CorruptBatch for an undefined number."""
        number = self.attributes & CODEC_MASK
        if number >= len(_CODECS):
            raise CorruptBatch(f"codec {number} does not exist")
        return _CODECS[number]

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether timestamps are the producer's or the broker's."""
        return TimestampType.APPEND if self.attributes & APPEND_TIME_FLAG else TimestampType.CREATE

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a control record (a transaction marker) instead of data."""
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones and markers (KIP-534), if it is set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def last_offset(self) -> int:
        """Offset of the last record the batch was produced with."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset of whatever follows the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote the batch."""
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, wrapping behind 2^31-1; -1 without sequences."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & _LARGEST_SEQUENCE


class Record(NamedTuple):
    """One record with its absolute offset; null key or value is None."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def parse_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """Read the header at `position`; the records behind it need not be in the buffer.

    Raises CorruptBatch if there are fewer than 61 bytes, the magic is not 2, or the length is
    less than a header.
    """
    if len(buffer) - position < HEADER_SIZE:
        raise CorruptBatch(
            f"{max(0, len(buffer) - position)} bytes at {position} are too few for a batch header"
        )
    header = BatchHeader._make(HEADER.unpack_from(buffer, position))
    if header.magic != 2:
        raise CorruptBatch(f"magic {header.magic} at {position} where 2 was expected")
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptBatch(f"batch length {header.batch_length} at {position} is below a header")
    return header


def headers(
    buffer: bytes | bytearray | memoryview, position: int = 0, *, allow_partial: bool = False
) -> Iterator[tuple[int, BatchHeader]]:
    """The (position, header) of each batch from `position` on.

    A batch cut short at the end raises CorruptBatch, or ends the iteration with `allow_partial`:
    a Fetch response may end in the middle of a batch.
    """
    end = len(buffer)
    while position < end:
        if end - position < HEADER_SIZE and allow_partial:
            return
        header = parse_header(buffer, position)
        if header.size > end - position:
            if allow_partial:
                return
            raise CorruptBatch(
                f"a batch of {header.size} bytes at {position} where {end - position} are left"
            )
        yield position, header
        position += header.size


def checksum(buffer: bytes | bytearray | memoryview, position: int, size: int) -> int:
    """The CRC-32C of the batch of `size` bytes at `position`, as its header should state it."""
    return crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : position + size])


def verify_crc(buffer: bytes | bytearray | memoryview, position: int, header: BatchHeader) -> None:
    """Raise CorruptBatch unless the batch is complete and its bytes match its checksum."""
    if len(buffer) - position < header.size:
        raise CorruptBatch(f"the batch at {position} is cut short")
    computed = checksum(buffer, position, header.size)
    if computed != header.crc:
        raise CorruptBatch(
            f"the batch at {position} states CRC {header.crc:#010x} and has {computed:#010x}"
        )


def stamp(
    buffer: bytearray | memoryview, position: int, *, base_offset: int, leader_epoch: int
) -> None:
    """Write the leader's offset and epoch into the batch; neither is part of the checksum."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + LEADER_EPOCH_POSITION, leader_epoch)


def stamp_timestamp(
    buffer: bytearray | memoryview, position: int, kind: TimestampType, max_timestamp: int
) -> None:
    """Set timestamp type and max timestamp of the complete batch and renew its checksum."""
    _, length = _OFFSET_AND_LENGTH.unpack_from(buffer, position)
    (attributes,) = _INT16.unpack_from(buffer, position + ATTRIBUTES_POSITION)
    attributes = attributes & ~APPEND_TIME_FLAG | (APPEND_TIME_FLAG if kind else 0)
    _INT16.pack_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(buffer, position + MAX_TIMESTAMP_POSITION, max_timestamp)
    crc = checksum(buffer, position, length + LOG_OVERHEAD)
    _UINT32.pack_into(buffer, position + CRC_POSITION, crc)


def records_section(
    buffer: bytes | bytearray | memoryview,
    position: int,
    header: BatchHeader,
    *,
    limit: int = DEFAULT_LIMIT,
) -> bytes:
    """The batch's records section, decompressed to at most `limit` bytes.

    Raises CorruptBatch for an unknown codec, CompressionError (DecompressedTooLarge) otherwise.
    """
    codec = header.codec
    payload = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    if codec is Codec.NONE:
        return bytes(payload)
    return decompress(codec, payload, limit=limit)


def records(
    buffer: bytes | bytearray | memoryview, position: int = 0, *, limit: int = DEFAULT_LIMIT
) -> list[Record]:
    """All records of the batch at `position`, keys and values copied out.

    The checksum is not verified (see verify_crc). Raises CorruptBatch for any malformed record,
    for bytes left behind the last one, and for data that does not decompress.
    """
    header = parse_header(buffer, position)
    if header.size > len(buffer) - position:
        raise CorruptBatch(f"the batch at {position} is cut short")
    try:
        section = records_section(buffer, position, header, limit=limit)
    except CompressionError as error:
        raise CorruptBatch(str(error)) from error
    return parse_records(section, header)


def parse_records(section: bytes, header: BatchHeader) -> list[Record]:
    """The records of a decompressed records section. Raises CorruptBatch if it is malformed."""
    append_time = header.max_timestamp if header.timestamp_type else None
    result: list[Record] = []
    position = 0
    if not 0 <= header.record_count <= len(section):
        raise CorruptBatch(f"{header.record_count} records in {len(section)} bytes")
    try:
        for _ in range(header.record_count):
            length, position = varint(section, position)
            end = position + length
            if length < 0 or end > len(section):
                raise CorruptBatch(f"a record of {length} bytes does not fit")
            record = _parse_record(section, position, end, header)
            result.append(record if append_time is None else record._replace(timestamp=append_time))
            position = end
    except IndexError:
        raise CorruptBatch("the records end in the middle of a number") from None
    if position != len(section):
        raise CorruptBatch(f"{len(section) - position} bytes follow the last record")
    return result


def _parse_record(section: bytes, position: int, end: int, header: BatchHeader) -> Record:
    timestamp_delta, position = varint(section, position + 1, bits=64)
    offset_delta, position = varint(section, position)
    key, position = _nullable_bytes(section, position, end)
    value, position = _nullable_bytes(section, position, end)
    count, position = varint(section, position)
    if not 0 <= count <= end - position:
        raise CorruptBatch(f"{count} headers in {end - position} bytes")
    pairs: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _nullable_bytes(section, position, end)
        if name is None:
            raise CorruptBatch("a header without a key")
        content, position = _nullable_bytes(section, position, end)
        # Keys are UTF-8 by contract; a producer that breaks it gets its bytes back unchanged.
        pairs.append((name.decode("utf-8", "surrogateescape"), content))
    if position != end:
        raise CorruptBatch("a record's length does not match its content")
    return Record(
        header.base_offset + offset_delta,
        header.base_timestamp + timestamp_delta,
        key,
        value,
        tuple(pairs),
    )


def _nullable_bytes(section: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = varint(section, position)
    if length == -1:
        return None, position
    if length < 0 or length > end - position:
        raise CorruptBatch(f"a field of {length} bytes does not fit in its record")
    return section[position : position + length], position + length


def varint(data: bytes, position: int, *, bits: int = 32) -> tuple[int, int]:
    """Read a zigzag varint of at most `bits` bits; return it and the position behind it.

    Raises IndexError at the end of data and CorruptBatch for a number of too many bits.
    """
    raw = 0
    shift = 0
    while True:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise CorruptBatch(f"a number of more than {bits} bits")
    if raw >> bits:
        raise CorruptBatch(f"a number of more than {bits} bits")
    return raw >> 1 ^ -(raw & 1), position
