"""Compacted logs for tests: written, cleaned in the process, and read back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from barnabas_broker.log.cleaner.cleaning import Cleaning
from barnabas_broker.log.cleaner.job import Finished, GroupReady
from barnabas_broker.log.cleaner.manager import CleanerManager, Resources
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.files import remove_files, sync_directory
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.records import batch as record_batches
from barnabas_kafka.records.batch import BatchHeader, Record
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.broker.log.samples import NOW, TP, open_directories, validated

COMPACT = LogConfig(
    compact=True,
    delete=False,
    segment_bytes=400,
    index_interval_bytes=100,
    min_cleanable_ratio=0.0,
    file_delete_delay_ms=0,
    delete_retention_ms=1000,
)

PLENTY = Resources(
    map_bytes=1 << 20, map_load_factor=0.9, io_bytes=1 << 20, bytes_per_second=float("inf")
)

Write = tuple[bytes | None, bytes | None]


class Survivor(NamedTuple):
    """A record that is still there."""

    offset: int
    key: bytes | None
    value: bytes | None


def open_compacted(
    directory: Path, config: LogConfig = COMPACT
) -> tuple[LogDirectories, PartitionLog]:
    """A log directory with one compacted log."""
    logs = open_directories(directory, config=config)
    log = logs.logs.get(TP) or logs.create(TP, config, None, NOW)
    log.advance_high_watermark(log.log_end_offset)
    return logs, log


def write(
    log: PartitionLog,
    *writes: Write,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    now_ms: int = NOW,
) -> int:
    """Append one batch of (key, value) pairs; returns its first offset."""
    number, epoch, sequence = producer
    data = build_batch(
        [(now_ms + n, key, value, ()) for n, (key, value) in enumerate(writes)],
        codec=codec,
        producer_id=number,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    info = log.append_as_leader(validated(data), leader_epoch=3, now_ms=now_ms)
    log.advance_high_watermark(log.log_end_offset)
    return info.first_offset


def clean(
    logs: LogDirectories,
    manager: CleanerManager | None = None,
    *,
    now_ms: int = NOW,
    resources: Resources = PLENTY,
) -> Finished | None:
    """One cleaning, as the broker does it but in this process; None when no log is due."""
    manager = manager or CleanerManager(logs)
    task = manager.pick(now_ms, resources)
    if task is None:
        return None

    def swap(ready: GroupReady) -> None:
        removed = manager.swap(task, ready.replaced, now_ms)
        sync_directory(task.log.directory)
        remove_files(removed)

    result = Cleaning(task.job, swap).run()
    manager.done(task, result)
    logs.checkpoint_beside(task.tp)
    return result


def headers_of(log: PartitionLog) -> list[BatchHeader]:
    """Every batch in the log's files."""
    return [
        header
        for segment in log.segments
        for _, header in record_batches.headers(segment.file.read(0, segment.size))
    ]


def survivors(log: PartitionLog) -> list[Survivor]:
    """Every data record in the log's files, in order."""
    return [Survivor(one.offset, one.key, one.value) for one in records_of(log)]


def records_of(log: PartitionLog) -> list[Record]:
    """The same with timestamps and headers."""
    found: list[Record] = []
    for segment in log.segments:
        data = segment.file.read(0, segment.size)
        for position, header in record_batches.headers(data):
            record_batches.verify_crc(data, position, header)
            if not header.is_control:
                found += record_batches.records(data, position)
    return found


def last_values(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    """What a reader of the whole log ends up with."""
    return {one.key: one.value for one in survivors(log) if one.value is not None} | {
        one.key: one.value for one in survivors(log)
    }


def read_through(log: PartitionLog) -> list[int]:
    """Every offset a consumer gets from the start on; like clients it goes on behind each batch."""
    found: list[int] = []
    offset = log.log_start_offset
    while offset < log.high_watermark:
        data = log.read(offset, 1000, upper_bound=log.high_watermark).read()
        for position, header in record_batches.headers(data):
            if not header.is_control:
                found += [one.offset for one in record_batches.records(data, position)]
            offset = header.next_offset
    return found
