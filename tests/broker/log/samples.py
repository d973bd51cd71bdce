"""Batches and logs for the tests of the log: real bytes, small sizes, fixed clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectories, LogDirectoryError
from barnabas_broker.log.loader import Checkpointed
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records import batch as record_batches
from barnabas_kafka.records.batch import BatchHeader
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction,
)

TP = TopicPartition("orders", 3)
NOW = 1_700_000_000_000
CLUSTER = "bX9rLqQ3TOm2hLz8VvYQmw"
TOPIC_ID = UUID("3aa6a8f8-7f0c-4d7e-b2bb-7d2fa26cb8bd")
#: Room for four batches of one record of 20 bytes (91 bytes each).
SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


@dataclass
class Validated:
    """What the validator hands to the log."""

    buffer: bytearray
    headers: Sequence[tuple[int, BatchHeader]]
    max_timestamp: int
    saved_bytes: int | None = 0


def validated(data: bytes) -> Validated:
    buffer = bytearray(data)
    headers = list(record_batches.headers(buffer))
    return Validated(buffer, headers, max(header.max_timestamp for _, header in headers))


def batch_of(
    count: int = 1,
    *,
    size: int = 20,
    timestamp: int = NOW,
    offset: int = 0,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    leader_epoch: int = -1,
) -> bytes:
    """A batch of ``count`` records a millisecond apart; ``producer`` is (id, epoch, sequence)."""
    producer_id, producer_epoch, base_sequence = producer
    return build_batch(
        [(timestamp + n, b"key", b"v" * size, ()) for n in range(count)],
        base_offset=offset,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        leader_epoch=leader_epoch,
    )


def marker_of(producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0) -> bytes:
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return build_end_transaction(
        EndTransactionMarker(kind, coordinator_epoch),
        producer_id=producer_id,
        producer_epoch=epoch,
        timestamp_ms=NOW,
    )


def open_log(
    directory: Path,
    config: LogConfig | None = None,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    now_ms: int = NOW,
) -> PartitionLog:
    return PartitionLog.open(
        directory / "orders-3",
        TP,
        config or LogConfig(),
        Checkpointed(clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset),
        now_ms=now_ms,
    )


def housekeep(logs: LogDirectories, now_ms: int, **options: Any) -> None:
    """Retention, and the removal of files whose delay is over, as background tasks do both."""
    for _ in logs.retention(now_ms):
        pass
    logs.remove_due(now_ms, **options)


def append(log: PartitionLog, data: bytes, *, epoch: int = 0, now_ms: int = NOW) -> int:
    """Append a batch as leader with everything replicated; return its first offset."""
    info = log.append_as_leader(validated(data), leader_epoch=epoch, now_ms=now_ms)
    log.advance_high_watermark(log.log_end_offset)
    return info.first_offset


def bases(log: PartitionLog) -> list[int]:
    """Where the segments begin."""
    return [segment.base_offset for segment in log.segments]


def refused(code: ErrorCode, call: object, *args: object, **options: object) -> None:
    """Hold that a call raises KafkaError with this code."""
    assert callable(call)
    with pytest.raises(KafkaError) as caught:
        call(*args, **options)
    assert caught.value.code == code


def fill(log: PartitionLog, count: int, *, records: int = 1, step_ms: int = 1) -> None:
    """Append ``count`` equal batches, ``step_ms`` apart."""
    for number in range(count):
        append(log, batch_of(records, timestamp=NOW + number * step_ms))


def offsets_in(data: bytes) -> list[int]:
    """Every offset in a run of magic 2 batches."""
    return [
        record.offset
        for position, _ in record_batches.headers(data)
        for record in record_batches.records(data, position)
    ]


def read_all(log: PartitionLog, *, max_bytes: int = 1000) -> list[int]:
    """Every offset a consumer gets that reads from the log start to the high watermark."""
    found: list[int] = []
    offset = log.log_start_offset
    while offset < log.high_watermark:
        part = log.read(offset, max_bytes, upper_bound=log.high_watermark)
        offsets = offsets_in(part.read())
        found += [number for number in offsets if number >= offset]
        offset = offsets[-1] + 1
    return found


def open_directories(
    *paths: Path,
    broker_id: int = 1,
    cluster_id: str = CLUSTER,
    config: LogConfig | None = None,
    now_ms: int = NOW,
) -> LogDirectories:
    logs = LogDirectories.take(paths)
    try:
        logs.claim(broker_id=broker_id, cluster_id=cluster_id)
        logs.load(lambda _: config or LogConfig(), now_ms=now_ms)
    except LogDirectoryError:
        logs.close(clean=False)
        raise
    return logs
