"""One cleaning of one log, on its files: the work of a cleaner process.

Two passes. The first reads the dirty part and notes the last offset of every key, until the part
or the memory for keys ends. The second reads everything below that, group by group, and writes
what the filter leaves into ``<base>.log.cleaned`` with indexes of its own. A group is synced
before it is announced; putting it in place is the business of the log's owner.

Only finished files are touched: the segments below the active one. Should
one of them vanish (retention, deletion of the topic) the cleaning ends with FileNotFoundError.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from barnabas_broker.log import batches
from barnabas_broker.log.batches import CorruptSegmentError, StoredBatch
from barnabas_broker.log.cleaner import records
from barnabas_broker.log.cleaner.filtering import (
    BatchFilter,
    LastRecord,
    Rules,
    messages_of,
    section_of,
)
from barnabas_broker.log.cleaner.grouping import Source, groups
from barnabas_broker.log.cleaner.job import Finished, GroupReady, Job
from barnabas_broker.log.cleaner.offset_map import OffsetMap
from barnabas_broker.log.cleaner.throttle import Throttle
from barnabas_broker.log.cleaner.transactions import CleanedTransactions
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.files import DataFile, remove_file, set_times, sync_file
from barnabas_broker.log.names import (
    CLEANED,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    TRANSACTION_INDEX,
    segment_file,
)
from barnabas_broker.log.segment import Appended, Segment
from barnabas_broker.log.transaction_index import AbortedTransaction, TransactionIndex
from barnabas_kafka.records.batch import parse_header
from barnabas_kafka.records.control import ControlType, parse_control_key
from barnabas_kafka.records.legacy import parse_message

#: The least that is read or written at once, whatever the settings say.
_SMALLEST_BUFFER = 64 * 1024


class Cleaning:
    """See the module's docstring; ``announce`` is called with every group as it gets ready."""

    def __init__(
        self,
        job: Job,
        announce: Callable[[GroupReady], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._announce = announce
        self._sleep = sleep
        self._clock = clock
        self._directory = Path(job.directory)
        self._throttle = Throttle(job.bytes_per_second, clock())
        self._buffer = max(job.io_bytes // 2, _SMALLEST_BUFFER)
        expected = job.first_uncleanable - job.first_dirty
        self._offsets = OffsetMap(job.map_bytes, load_factor=job.map_load_factor, expected=expected)

    def run(self) -> Finished:
        """Clean. Raises OSError; CorruptSegmentError and CorruptBatch for a log that is none."""
        job, began = self._job, self._clock()
        aborted = self._aborted_transactions()
        self._fill_map(aborted)
        end = self._offsets.latest_offset + 1
        below = [base for base in job.segments if base < end]
        found = BatchFilter(
            Rules(
                now_ms=job.now_ms,
                delete_retention_ms=job.delete_retention_ms,
                upper_bound=job.first_uncleanable,
                producers={
                    number: LastRecord(offset if offset >= 0 else None, epoch)
                    for number, offset, epoch in job.producers
                },
            ),
            self._offsets,
            transactions := CleanedTransactions(aborted),
        )
        legacy_horizon = self._legacy_horizon_ms()
        for group in groups(
            [self._source(base) for base in below],
            segment_bytes=job.segment_bytes,
            index_bytes=job.segment_index_bytes,
            upper_bound=job.first_uncleanable,
        ):
            self._clean_group(group, found, transactions, legacy_horizon)
            self._announce(GroupReady(replaced=[source.base_offset for source in group]))
        counts = found.counts
        return Finished(
            clean_to=end,
            records_read=counts.records_read,
            records_kept=counts.records_kept,
            bytes_read=counts.bytes_read,
            bytes_kept=counts.bytes_kept,
            keyless=counts.keyless,
            map_utilization=self._offsets.utilization,
            seconds=self._clock() - began,
        )

    # --- the first pass ----------------------------------------------------------------------

    def _fill_map(self, aborted: Iterable[AbortedTransaction]) -> None:
        job = self._job
        start, end = job.first_dirty, job.first_uncleanable
        transactions = CleanedTransactions(entry for entry in aborted if entry.last_offset >= start)
        self._offsets.reached(start - 1)
        bounds = [*job.segments[1:], end]
        for base, next_base in zip(job.segments, bounds, strict=True):
            if next_base <= start or base >= end:
                continue
            file = DataFile.open(segment_file(self._directory, base, LOG), writable=False)
            for batch, data in self._batches(file):
                if batch.last_offset < start:
                    continue
                if not self._note(batch, data, transactions):
                    return
                self._offsets.reached(batch.last_offset)
                self._pace(batch.size)
            # Offsets without a batch (compacted, or never assigned) are clean too.
            self._offsets.reached(min(next_base, end) - 1)

    def _note(
        self, batch: StoredBatch, data: memoryview, transactions: CleanedTransactions
    ) -> bool:
        """Put the keys of a batch into the map; False when the map is full before the end."""
        offsets, start = self._offsets, self._job.first_dirty
        if batch.is_control:
            transactions.marker_read(batch, _kind_of(data), empty=not batch.record_count)
            return True
        if transactions.batch_read(batch):
            return True
        for key, offset in _keys_of(batch, data):
            if key is None or offset < start:
                continue
            if offsets.is_full:
                return False
            offsets.put(key, offset)
        return True

    # --- the second pass ---------------------------------------------------------------------

    def _clean_group(
        self,
        group: list[Source],
        found: BatchFilter,
        transactions: CleanedTransactions,
        legacy_horizon_ms: int,
    ) -> None:
        target = self._create(group[0].base_offset)
        writer = _Writer(target, self._buffer)
        modified_ns = 0
        for source in group:
            path = segment_file(self._directory, source.base_offset, LOG)
            file = DataFile.open(path, writable=False)
            modified_ns = path.stat().st_mtime_ns
            keep_tombstones = file.modified_ms() > legacy_horizon_ms
            for batch, data in self._batches(file):
                kept = found.filter(batch, data, keep_legacy_tombstones=keep_tombstones)
                if kept is not None:
                    writer.add(kept.data, batch.last_offset, kept.max_timestamp)
                for entry in transactions.kept:
                    target.aborted.append(entry)
                transactions.kept.clear()
                self._pace(batch.size + (len(kept.data) if kept is not None else 0))
        writer.flush()
        self._finish(target, modified_ns)

    def _create(self, base_offset: int) -> Segment:
        job = self._job
        for suffix in SEGMENT_SUFFIXES:
            remove_file(_cleaned(self._directory, base_offset, suffix))
        config = LogConfig(
            segment_index_bytes=job.segment_index_bytes,
            index_interval_bytes=job.index_interval_bytes,
        )
        segment = Segment(self._directory, base_offset, config, job.now_ms)
        for index in (segment.offsets, segment.times, segment.aborted):
            index.path = index.path.with_name(index.path.name + CLEANED)
        segment.file = DataFile.create(_cleaned(self._directory, base_offset, LOG))
        segment.offsets.create()
        segment.times.create()
        return segment

    def _finish(self, segment: Segment, modified_ns: int) -> None:
        """Complete and sync the files; retention goes on seeing the age of the originals."""
        segment.seal()
        for suffix in SEGMENT_SUFFIXES:
            path = _cleaned(self._directory, segment.base_offset, suffix)
            if path.exists():
                set_times(path, modified_ns)
                sync_file(path)

    # --- what both need ----------------------------------------------------------------------

    def _batches(self, file: DataFile) -> Iterator[tuple[StoredBatch, memoryview]]:
        """Every batch of a closed segment, which unlike an active one has no torn end."""
        end = 0
        for batch, data in batches.scan(file, window=self._buffer):
            yield batch, data
            end = batch.next_position
        if end != file.size:
            raise CorruptSegmentError(end, f"{file.size - end} bytes that are no whole batch")

    def _source(self, base_offset: int) -> Source:
        log, offsets, times = (
            segment_file(self._directory, base_offset, suffix).stat().st_size
            for suffix in (LOG, OFFSET_INDEX, TIME_INDEX)
        )
        return Source(base_offset, log, offsets, times)

    def _aborted_transactions(self) -> list[AbortedTransaction]:
        """Of the whole log: a transaction's entry lies where its marker does, which may be late."""
        found: list[AbortedTransaction] = []
        for base in self._job.segments:
            path = segment_file(self._directory, base, TRANSACTION_INDEX)
            index = TransactionIndex(path, base)
            index.load()
            found += index.entries
        return found

    def _legacy_horizon_ms(self) -> int:
        """Segments modified before this have no tombstones of formats 0 and 1 to keep."""
        clean = [base for base in self._job.segments if base < self._job.first_dirty]
        if not clean:
            return 0
        modified = segment_file(self._directory, clean[-1], LOG).stat().st_mtime_ns // 1_000_000
        return modified - self._job.delete_retention_ms

    def _pace(self, moved: int) -> None:
        pause = self._throttle.pause_s(moved, self._clock())
        if pause > 0:
            self._sleep(pause)


class _Writer:
    """Gathers batches until they are worth a write."""

    __slots__ = ("_appended", "_data", "_limit", "_segment")

    def __init__(self, segment: Segment, limit: int) -> None:
        self._segment = segment
        self._limit = limit
        self._data = bytearray()
        self._appended: list[Appended] = []

    def add(self, data: bytes | memoryview, last_offset: int, max_timestamp: int) -> None:
        self._data += data
        self._appended.append((len(data), last_offset, max_timestamp))
        if len(self._data) >= self._limit:
            self.flush()

    def flush(self) -> None:
        if self._appended:
            self._segment.append(self._data, self._appended)
            self._data, self._appended = bytearray(), []


def _cleaned(directory: Path, base_offset: int, suffix: str) -> Path:
    path = segment_file(directory, base_offset, suffix)
    return path.with_name(path.name + CLEANED)


def _keys_of(batch: StoredBatch, data: memoryview) -> Iterable[tuple[bytes | None, int]]:
    """(key, offset) of every record of a data batch. Raises CorruptBatch."""
    if batch.magic < 2:
        return [(one.key, one.offset) for one in messages_of(parse_message(data, 0, batch.size))]
    section = section_of(data, parse_header(data))
    base = batch.base_offset
    return [
        (one.key, base + one.offset_delta) for one in records.spans(section, batch.record_count)
    ]


def _kind_of(data: memoryview) -> ControlType | None:
    header = parse_header(data)
    found = records.spans(section_of(data, header), header.record_count)
    return parse_control_key(found[0].key) if found else None
