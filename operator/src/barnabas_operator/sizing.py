"""From messages per day to bytes on a disk: an arithmetic that shows its working.

The factors are those of the classic rule of thumb (new messages, retention, average size, replicas,
compression); instead of a flat tenth for "indexes and the rest" each part is reckoned:

* A record has its own few bytes of format, a batch a header of 61 which its records share.
* Each log has an offset index and a time index, 8 and 12 bytes for every `index.interval.bytes` of
  log, but at most one entry per batch.
* Retention removes whole segments, and only when their newest record has expired: each partition
  keeps up to one segment more than retention asks for. A segment ends with `segment.bytes` or after
  `segment.ms`, whichever comes first.
* A part of the disk is to stay free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from barnabas_operator.api.amounts import parse_duration_ms, show_bytes
from barnabas_operator.api.storage import Sizing

BATCH_HEADER_BYTES: Final = 61
# Offset index 8, time index 12: the formats of `.index` and `.timeindex`.
INDEX_ENTRY_BYTES: Final = 20
# Small files beside a partition's log (partition.metadata, leader-epoch-checkpoint) and the blocks
# that these and the ends of log and indexes only begin.
PARTITION_BYTES: Final = 5 * 4096
DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogShape:
    """The broker settings that shape a log; Kafka's defaults."""

    segment_bytes: int = 2**30
    segment_ms: int = 7 * DAY_MS
    index_interval_bytes: int = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Bytes on the disk of one broker, and how they come about."""

    log_bytes: int
    index_bytes: int
    expired_bytes: int
    headroom_bytes: int
    lines: tuple[str, ...]

    @property
    def data_bytes(self) -> int:
        """What the retained messages take, with their indexes."""
        return self.log_bytes + self.index_bytes

    @property
    def claim_bytes(self) -> int:
        """The size of the disk."""
        return self.data_bytes + self.expired_bytes + self.headroom_bytes


def estimate(sizing: Sizing, *, brokers: int = 1, shape: LogShape | None = None) -> Estimate:
    """The disk of each of so many brokers, over which the messages are spread evenly."""
    shape = shape or LogShape()
    retention_ms = parse_duration_ms(sizing.retention)
    record = record_bytes(sizing.average_message_bytes, sizing.messages_per_batch)
    batch = BATCH_HEADER_BYTES + sizing.messages_per_batch * record * sizing.compression_ratio
    stored = batch / sizing.messages_per_batch
    messages = sizing.messages_per_day * retention_ms / DAY_MS
    share = sizing.replicas / brokers
    log = messages * stored * share
    partitions = sizing.partitions * share
    index = log / max(shape.index_interval_bytes, batch) * INDEX_ENTRY_BYTES
    index += partitions * PARTITION_BYTES
    # What one partition takes in while a segment is open.
    per_segment_ms = sizing.messages_per_day * stored * shape.segment_ms / DAY_MS
    segment = min(shape.segment_bytes, per_segment_ms / sizing.partitions)
    expired = partitions * segment
    used = log + index + expired
    headroom = used / (1 - sizing.headroom) - used
    widest = max(shape.index_interval_bytes, round(batch))
    lines = [
        _message_line(sizing, record, stored),
        f"retained: {sizing.messages_per_day:,} per day × {retention_ms / DAY_MS:g} days",
        f"log: {messages:,.0f} × {stored:,.1f} B × {sizing.replicas} replicas / {brokers} brokers",
        f"indexes: {INDEX_ENTRY_BYTES} B per {widest:,} B + {PARTITION_BYTES:,} B × {partitions:g}",
        f"not yet removed: {partitions:g} segments of {show_bytes(round(segment))}",
        f"headroom: {sizing.headroom:.0%} of the disk",
        "each broker",
    ]
    results = [
        f"{stored:,.1f} B",
        f"{messages:,.0f} messages",
        *(show_bytes(round(part)) for part in (log, index, expired, headroom, used + headroom)),
    ]
    return Estimate(
        log_bytes=math.ceil(log),
        index_bytes=math.ceil(index),
        expired_bytes=math.ceil(expired),
        headroom_bytes=math.ceil(headroom),
        lines=tuple(" = ".join(pair) for pair in zip(lines, results, strict=True)),
    )


def _message_line(sizing: Sizing, record: int, stored: float) -> str:
    payload = sizing.average_message_bytes
    ratio = sizing.compression_ratio
    compressed = f" × {ratio:g} compressed" if ratio != 1 else ""
    per_batch = f"{BATCH_HEADER_BYTES} B / {sizing.messages_per_batch:,} per batch"
    return f"message: ({payload:,} B + {record - payload} B of format){compressed} + {per_batch}"


def record_bytes(payload: int, messages_per_batch: int) -> int:
    """A record in a batch of format 2: its payload and the varints round it.

    Attributes, key length and header count take a byte each (an absent key is a length of -1); the
    timestamp's distance from the batch's first is taken as two bytes, tens of milliseconds to
    seconds; the offset's distance depends on the batch, the value's length on the payload.
    """
    around = 3 + 2 + varint_bytes(messages_per_batch - 1) + varint_bytes(payload)
    return varint_bytes(payload + around) + around + payload


def varint_bytes(value: int) -> int:
    """The size of a whole number of 0 or more as a zigzag varint."""
    return max(1, math.ceil((value << 1).bit_length() / 7))
