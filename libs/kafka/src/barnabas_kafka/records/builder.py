"""Building record batches of format 2.

Brokers build batches rarely: to convert or recompress what a client sent, for control records, for
the records of their own internal topics, and when compaction keeps some records of a batch.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from barnabas_kafka.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_FLAG,
    CRC_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from barnabas_kafka.records.compression import Codec, compress
from barnabas_kafka.records.crc import crc32c

#: The header of a batch: what its checksum does not cover, checksum included, and the rest.
_UNCOVERED: Final = Struct(">qiibI")
_COVERED: Final = Struct(">hiqqqhii")

#: What a record is made of: timestamp in ms, key, value, headers.
RecordContent = tuple[int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]


def build_batch(
    records: Sequence[RecordContent],
    *,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """Build one batch, checksum and all; offsets count up from `base_offset`."""
    base_timestamp = records[0][0] if records else -1
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        leader_epoch=leader_epoch,
        magic=2,
        crc=0,
        attributes=(TRANSACTIONAL_FLAG if transactional else 0) | (CONTROL_FLAG if control else 0),
        last_offset_delta=max(len(records) - 1, 0),
        base_timestamp=base_timestamp,
        max_timestamp=max((content[0] for content in records), default=-1),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    section = encode_records(records, range(len(records)), base_timestamp)
    return bytes(recode_batch(header, section, codec, level=level))


def plain_batch_of(section: bytes, count: int, timestamp: int) -> bytearray:
    """The batch of `count` records that are laid out already, all of that time; as `build_batch`.

    Nothing is compressed, and there is no producer.
    """
    covered = _COVERED.pack(0, count - 1, timestamp, timestamp, -1, -1, -1, count) + section
    length = HEADER_SIZE - LOG_OVERHEAD + len(section)
    batch = bytearray(_UNCOVERED.pack(0, length, -1, 2, crc32c(covered)))
    batch += covered
    return batch


def recode_batch(
    header: BatchHeader, section: bytes | bytearray, codec: Codec, *, level: int | None = None
) -> bytearray:
    """The batch of `header` and decompressed `section` in another codec, all else as it was.

    The records are not parsed: a codec changes how they are packed, not what they are.
    """
    payload = section if codec is Codec.NONE else compress(codec, section, level)
    return _seal(header, header.attributes & ~CODEC_MASK | codec, payload)


def _seal(header: BatchHeader, attributes: int, payload: bytes | bytearray) -> bytearray:
    """Header and payload as a batch, with the length and checksum that belong to them."""
    batch = bytearray(
        HEADER.pack(
            header.base_offset,
            HEADER_SIZE - LOG_OVERHEAD + len(payload),
            header.leader_epoch,
            header.magic,
            0,
            attributes,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
        )
    )
    batch += payload
    crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    batch[CRC_POSITION : CRC_POSITION + 4] = crc.to_bytes(4, "big")
    return batch


def encode_records(
    records: Sequence[RecordContent], offset_deltas: Sequence[int], base_timestamp: int
) -> bytearray:
    """The records of a batch, each at its distance from the base offset."""
    section = bytearray()
    for content, delta in zip(records, offset_deltas, strict=True):
        _append_record(section, content, delta, base_timestamp)
    return section


def _append_record(
    section: bytearray, content: RecordContent, offset_delta: int, base_timestamp: int
) -> None:
    timestamp, key, value, headers = content
    body = bytearray(1)  # attributes: none is defined
    append_varint(body, timestamp - base_timestamp)
    append_varint(body, offset_delta)
    _append_bytes(body, key)
    _append_bytes(body, value)
    append_varint(body, len(headers))
    for name, header_value in headers:
        _append_bytes(body, name.encode("utf-8", "surrogateescape"))
        _append_bytes(body, header_value)
    append_varint(section, len(body))
    section += body


def _append_bytes(target: bytearray, value: bytes | None) -> None:
    if value is None:
        target.append(1)  # the varint of -1
    else:
        append_varint(target, len(value))
        target += value


def append_varint(target: bytearray, value: int) -> None:
    """Append `value` as a zigzag varint."""
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    while raw > 0x7F:
        target.append(raw & 0x7F | 0x80)
        raw >>= 7
    target.append(raw)
