"""Which logs are being cleaned, which cannot be, and what came of it: the owner's side.

Lives on the event loop and touches only logs in memory and the renames of the swap. A log is in
one of these states::

    idle ──pick──▸ cleaning ──done──▸ idle
                      ├──abandon──▸ idle          deleted, cut, or the disk was full: tried again
                      └──give_up──▸ uncleanable   its bytes are no log; until the next start

What a cleaning found is taken over only while the log is still the one it was made for: every
swap compares the segments, and a truncation ends the cleaning.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas_broker.log.cleaner import filthiness
from barnabas_broker.log.cleaner.filthiness import Filth, LogFacts, SegmentFacts
from barnabas_broker.log.cleaner.job import Finished, Job
from barnabas_broker.log.config import MAX_INT64
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.files import remove_files
from barnabas_broker.log.names import CLEANED
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one cleaning may use; sizes in bytes."""

    map_bytes: int
    map_load_factor: float
    io_bytes: int
    bytes_per_second: float


class NoLongerWantedError(Exception):
    """The log is not any more what a cleaning was begun for."""


@dataclass(slots=True, kw_only=True, eq=False)
class Task:
    """A cleaning under way."""

    log: PartitionLog
    job: Job
    filth: Filth
    end_offset: int

    @property
    def tp(self) -> TopicPartition:
        return self.log.tp


class CleanerStats:
    """What the cleaner has done, under the names of Kafka's gauges where it has one."""

    __slots__ = (
        "bytes_kept",
        "bytes_read",
        "cleanings",
        "keyless_records",
        "max_buffer_utilization_percent",
        "max_clean_time_secs",
        "max_compaction_delay_secs",
        "max_dirty_percent",
        "recopy_percent",
    )

    def __init__(self) -> None:
        self.cleanings = 0
        self.bytes_read = 0
        self.bytes_kept = 0
        self.keyless_records = 0
        #: of the dirtiest log when a log was last looked for
        self.max_dirty_percent = 0
        self.max_compaction_delay_secs = 0
        #: of the last cleaning
        self.max_buffer_utilization_percent = 0
        self.max_clean_time_secs = 0
        self.recopy_percent = 0

    def add(self, done: Finished) -> None:
        self.cleanings += 1
        self.bytes_read += done.bytes_read
        self.bytes_kept += done.bytes_kept
        self.keyless_records += done.keyless
        self.max_buffer_utilization_percent = round(100 * done.map_utilization)
        self.max_clean_time_secs = round(done.seconds)
        self.recopy_percent = round(100 * done.bytes_kept / max(done.bytes_read, 1))


class CleanerManager:
    """See the module's docstring."""

    def __init__(self, logs: LogDirectories) -> None:
        self._logs = logs
        self._cleaning: dict[PartitionLog, Task] = {}
        self._uncleanable: dict[PartitionLog, str] = {}
        self.stats = CleanerStats()

    @property
    def uncleanable(self) -> dict[TopicPartition, str]:
        """The partitions that cannot be cleaned, with the reason."""
        return {log.tp: reason for log, reason in self._uncleanable.items()}

    def uncleanable_bytes(self, now_ms: int) -> int:
        """What could be cleaned in those partitions, were they sound."""
        return sum(
            filthiness.filth(_facts(log), now_ms).cleanable_bytes
            for log in self._uncleanable
            if log.segments
        )

    # --- choosing ----------------------------------------------------------------------------

    def pick(self, now_ms: int, resources: Resources) -> Task | None:
        """The filthiest log that is due, now being cleaned; None when there is none."""
        for log in [log for log in self._uncleanable if self._logs.logs.get(log.tp) is not log]:
            del self._uncleanable[log]
        taken = {task.tp for task in self._cleaning.values()}
        dirty = [
            (filthiness.filth(_facts(log), now_ms), log)
            for log in self._logs.logs.values()
            if log.config.compact
            and log.failure is None
            and not log.busy
            and log.tp not in taken
            and log.tp not in self._logs.moves
            and log not in self._uncleanable
        ]
        for found, log in dirty:
            if found.bounds.reset:
                self._reset(log, found)
        stats = self.stats
        stats.max_dirty_percent = round(100 * max((one.ratio for one, _ in dirty), default=0))
        delay_ms = max((one.delay_ms for one, _ in dirty), default=0)
        stats.max_compaction_delay_secs = delay_ms // 1000
        due = [pair for pair in dirty if pair[0].due]
        if not due:
            return None
        found, log = max(due, key=lambda pair: pair[0].ratio)
        task = Task(
            log=log,
            job=_job(log, found, now_ms, resources),
            filth=found,
            end_offset=log.log_end_offset,
        )
        self._cleaning[log] = task
        return task

    def _reset(self, log: PartitionLog, found: Filth) -> None:
        if not log.config.delete:
            _log.warning(
                "Cleaner checkpoint out of range: partition=%s checkpoint=%d log=%d..%d; "
                    "the whole log is dirty",
                log.tp, log.cleaned_to, log.log_start_offset, log.log_end_offset,
            )  # fmt: skip
        log.cleaned_to = found.bounds.first_dirty

    # --- what comes of it --------------------------------------------------------------------

    def check_wanted(self, task: Task) -> None:
        """Raise NoLongerWantedError when the task's log was deleted, cut, or lost its disk."""
        log = task.log
        if self._logs.logs.get(log.tp) is not log:
            raise NoLongerWantedError("the partition was deleted or moved")
        if log.tp in self._logs.moves:
            raise NoLongerWantedError("the partition is being moved")
        if log.failure is not None:
            raise NoLongerWantedError(f"the log is offline: {log.failure}")
        if log.busy or log.log_end_offset < task.end_offset:
            raise NoLongerWantedError("the log was truncated")
        if not log.config.compact:
            raise NoLongerWantedError("the topic is not compacted any more")

    def swap(self, task: Task, replaced: Sequence[int], now_ms: int) -> list[Path]:
        """Put a cleaned group in place; returns the old files, to be removed after a sync.

        Raises NoLongerWantedError; StorageError.
        """
        self.check_wanted(task)
        try:
            return task.log.replace_segments(replaced, now_ms)
        except ValueError as error:
            raise NoLongerWantedError("retention took some of its segments") from error

    def done(self, task: Task, result: Finished) -> None:
        """The pass is over and every group in place. Raises NoLongerWantedError."""
        self.check_wanted(task)
        del self._cleaning[task.log]
        task.log.cleaned_to = result.clean_to
        self.stats.add(result)
        if result.keyless:
            _log.warning("%s: %d records without a key were dropped", task.tp, result.keyless)
        _log.info(
            "%s: cleaned offsets %d to %d in %.1f s: %d of %d bytes and %d of %d records are left",
            task.tp, task.job.first_dirty, result.clean_to, result.seconds,
            result.bytes_kept, result.bytes_read, result.records_kept, result.records_read,
        )  # fmt: skip

    def abandon(self, task: Task, reason: str) -> None:
        """Nothing more comes of the task; what it left beside the log goes. May be tried again."""
        if self._cleaning.pop(task.log, None) is not None:
            _log.info("Cleaning aborted: partition=%s %s", task.tp, reason)
        for directory in {task.log.directory, Path(task.job.directory)}:
            remove_files(sorted(directory.glob(f"*{CLEANED}")))

    def give_up(self, task: Task, reason: str) -> None:
        """The log cannot be cleaned: it is left as it is until the broker starts again."""
        self.abandon(task, reason)
        self._uncleanable[task.log] = reason
        _log.error(
            "Failed to clean: partition=%s %s; the partition is not compacted", task.tp, reason
        )


def _facts(log: PartitionLog) -> LogFacts:
    config = log.config
    bounded = config.max_compaction_lag_ms < MAX_INT64
    return LogFacts(
        segments=[
            SegmentFacts(
                segment.base_offset,
                segment.size,
                segment.largest_timestamp,
                segment.first_timestamp if bounded else -1,
            )
            for segment in log.segments
        ],
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        cleaned_to=log.cleaned_to,
        min_ratio=config.min_cleanable_ratio,
        min_lag_ms=config.min_compaction_lag_ms,
        max_lag_ms=config.max_compaction_lag_ms,
    )


def _job(log: PartitionLog, found: Filth, now_ms: int, resources: Resources) -> Job:
    config = log.config
    return Job(
        directory=str(log.directory),
        segments=[segment.base_offset for segment in log.segments],
        first_dirty=found.bounds.first_dirty,
        first_uncleanable=found.bounds.first_uncleanable,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        map_bytes=resources.map_bytes,
        map_load_factor=resources.map_load_factor,
        io_bytes=resources.io_bytes,
        bytes_per_second=resources.bytes_per_second,
        producers=[
            (
                entry.producer_id,
                entry.batches[-1].last_offset if entry.batches else -1,
                entry.epoch,
            )
            for entry in log.producers.producers.values()
        ],
    )
