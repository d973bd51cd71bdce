"""The log of one partition: appends, reads, offsets, and the life of its segments.

One event loop owns all logs; nothing here is locked. What may block the loop for long (fsync,
unlink) is handed out as work for a thread: ``flush_plan`` and the paths that deletions return.

Offsets, in their order::

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset
    recovery_point   <= log_end_offset       everything below it is on the device

Invariants: segments are sorted, the last one is active and alone takes appends; every byte below
the size of a segment is part of a whole batch; producer state and leader epochs agree with the
bytes of the log; a read never crosses a segment and never ends inside a batch.

After an I/O error the log refuses everything with KAFKA_STORAGE_ERROR until the next start: what
a device that failed once holds is not known (Apache takes the whole directory offline).
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple, NoReturn
from uuid import UUID

from barnabas_broker.log import appending, checkpoints, loader, reading, retention, timestamps
from barnabas_broker.log.appending import AppendInfo as AppendInfo
from barnabas_broker.log.appending import ValidatedBatches
from barnabas_broker.log.batches import CorruptSegmentError
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.files import FileSlice, replace_file
from barnabas_broker.log.flushing import FlushPlan, Unflushed
from barnabas_broker.log.names import (
    DELETED,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
)
from barnabas_broker.log.producer_state import Origin, Plan
from barnabas_broker.log.segment import MAX_SEGMENT_SIZE, Appended, Segment
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


class OffsetAndTime(NamedTuple):
    """An offset found by time; ``leader_epoch`` is -1 when its batch carries none."""

    offset: int
    timestamp: int
    leader_epoch: int


class StorageError(KafkaError):
    """An I/O error under a partition's log; the broker takes ``directory`` offline."""

    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory}: {reason}")
        self.directory = directory


class PartitionLog:
    """See the module's docstring; construct with :meth:`open`."""

    __slots__ = (
        "_bases",
        "_removed",
        "_snapshots",
        "_unflushed",
        "config",
        "directory",
        "epochs",
        "failure",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "segments",
        "topic_id",
        "tp",
    )

    def __init__(
        self, directory: Path, tp: TopicPartition, config: LogConfig, loaded: loader.LoadedLog
    ) -> None:
        self.directory = directory
        self.tp = tp
        self.config = config
        self.segments = loaded.segments
        self._bases = [segment.base_offset for segment in loaded.segments]
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self._snapshots = loaded.snapshots
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.high_watermark = loaded.log_start_offset
        self.recovery_point = loaded.recovery_point
        self.topic_id: UUID | None = None
        self.failure: str | None = None
        self._removed = loaded.removed
        self._unflushed = Unflushed()

    @classmethod
    def open(
        cls,
        directory: Path,
        tp: TopicPartition,
        config: LogConfig,
        *,
        clean: bool,
        recovery_point: int,
        now_ms: int,
        log_start_offset: int = 0,
        topic_id: UUID | None = None,
    ) -> PartitionLog:
        """Open the log in ``directory``, creating and repairing what is needed.

        The high watermark starts at the log start offset; the owner of the replica advances it to
        the checkpointed one. Raises OSError, and KafkaError INCONSISTENT_TOPIC_ID when
        partition.metadata names another topic id.
        """
        new = not directory.exists()
        if new:
            directory.mkdir()
        loaded = loader.load(
            directory,
            config,
            clean=clean or new,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            now_ms=now_ms,
        )
        log = cls(directory, tp, config, loaded)
        log._unflushed.flushed_ms = now_ms
        log._unflushed.directory_changed = new
        log._adopt_topic_id(topic_id)
        return log

    # --- identity ----------------------------------------------------------------------------

    def _adopt_topic_id(self, topic_id: UUID | None) -> None:
        path = self.directory / PARTITION_METADATA
        try:
            stored = checkpoints.parse_partition_metadata(path.read_bytes())
        except FileNotFoundError:
            if topic_id is not None and topic_id.int:
                self.assign_topic_id(topic_id)
            return
        except checkpoints.MalformedCheckpointError as error:
            raise StorageError(self.directory, f"{PARTITION_METADATA}: {error}") from error
        if topic_id is not None and topic_id.int and topic_id != stored:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self.tp} belongs to topic id {stored}, not {topic_id}",
            )
        self.topic_id = stored

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Note the topic's id beside the data, before any data is written."""
        path = self.directory / PARTITION_METADATA
        replace_file(path, checkpoints.format_partition_metadata(topic_id), durable=False)
        self._unflushed.paths.add(path)
        self.topic_id = topic_id

    def moved_to(self, directory: Path) -> None:
        """Follow a rename of the directory, which the caller has done."""
        self.directory = directory
        self._snapshots.directory = directory
        self._unflushed.paths.clear()
        for segment in self.segments:
            segment.moved_to(directory)

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        """Bytes in all ``.log`` files."""
        return sum(segment.file.size for segment in self.segments)

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch in the log or assigned to it; -1 when there is none."""
        return self.epochs.latest

    # --- append ------------------------------------------------------------------------------

    def append_as_leader(
        self,
        batches: ValidatedBatches,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
    ) -> AppendInfo:
        """Give validated batches their offsets and write them with one write.

        Batches a producer has sent before are not written again: their original offsets are
        returned. Raises KafkaError: OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH,
        INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED, RECORD_LIST_TOO_LARGE; StorageError.
        """
        if self.failure is not None:
            raise StorageError(self.directory, self.failure)
        buffer = batches.buffer
        first_offset = self.log_end_offset
        stamped = appending.stamp_batches(batches, first_offset, leader_epoch)
        plan = None
        if stamped.sequenced:
            if origin is Origin.CLIENT:
                original = appending.find_duplicate(self.producers, stamped.sequenced)
                if original is not None:
                    return AppendInfo(
                        original.first_offset,
                        original.last_offset,
                        original.timestamp,
                        self.log_start_offset,
                        original.timestamp,
                        duplicate=True,
                    )
            plan = self.producers.check(stamped.sequenced, origin)
        if leader_epoch > self.epochs.latest:
            self.assign_epoch_start(leader_epoch, first_offset)
        self._write(buffer, stamped.appended, plan, batches.max_timestamp, now_ms)
        return AppendInfo(
            first_offset,
            self.log_end_offset - 1,
            now_ms if self.config.timestamp_type else -1,
            self.log_start_offset,
            batches.max_timestamp,
        )

    def append_as_follower(
        self, buffer: bytes | bytearray | memoryview, *, now_ms: int
    ) -> AppendInfo | None:
        """Append batches as the leader stored them; None when there is not one whole batch.

        A batch that is cut off at the end of the buffer is left out: the next fetch brings it.
        Raises KafkaError: CORRUPT_MESSAGE for a wrong CRC or length, OFFSET_OUT_OF_RANGE for
        offsets that do not continue the log; StorageError.
        """
        if self.failure is not None:
            raise StorageError(self.directory, self.failure)
        view = memoryview(buffer)
        found = appending.whole_batches(view, self.tp, self.log_end_offset)
        if not found:
            return None
        appended, sequenced = appending.as_stored(found, view)
        plan = self.producers.check(sequenced, Origin.REPLICATION) if sequenced else None
        for batch in found:
            if batch.magic < 2:
                self._epochs_changed(self.epochs.clear())
            elif batch.leader_epoch > self.epochs.latest:
                self.assign_epoch_start(batch.leader_epoch, batch.base_offset)
        youngest = max(batch.max_timestamp for batch in found)
        whole = view[: found[-1].next_position]
        self._write(whole, appended, plan, youngest, now_ms)
        return AppendInfo(
            found[0].base_offset, found[-1].last_offset, -1, self.log_start_offset, youngest
        )

    def _write(
        self,
        data: bytes | bytearray | memoryview,
        appended: list[Appended],
        plan: Plan | None,
        max_timestamp: int,
        now_ms: int,
    ) -> None:
        last_offset = appended[-1][1]
        segment = self._segment_for(len(data), last_offset, max_timestamp, now_ms)
        try:
            segment.append(data, appended)
            self.log_end_offset = last_offset + 1
            if plan is not None:
                for aborted in self.producers.commit(plan, last_offset + 1):
                    segment.aborted.append(aborted)
        except OSError as error:
            self._fail(error)
        self.producers.end_offset = last_offset + 1

    def _segment_for(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        """The active segment, a new one if this append must not go into the old."""
        config, segment = self.config, self.segments[-1]
        if size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes do not fit in a segment of {config.segment_bytes}",
            )
        filled = segment.file.size
        if (
            filled + size > min(config.segment_bytes, MAX_SEGMENT_SIZE)
            or segment.offsets.is_full
            or segment.times.is_full
            or not segment.fits(last_offset)
            or (
                filled
                and segment.waited_ms(now_ms, max_timestamp) > config.segment_ms - segment.jitter_ms
            )
        ):
            return self.roll(now_ms)
        return segment

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and start a new one at the log end offset.

        An empty active segment at the log end stays, with new index files.
        """
        active = self.active
        base = self.log_end_offset
        try:
            if active.base_offset == base and not active.size:
                active.offsets.create()
                active.times.create()
                return active
            active.seal()
            segment = Segment.create(self.directory, base, self.config, now_ms)
            self._take_snapshot()
        except OSError as error:
            self._fail(error)
        self.segments.append(segment)
        self._bases.append(base)
        self._unflushed.directory_changed = self._unflushed.rolled = True
        return segment

    def _take_snapshot(self) -> None:
        offset = self.producers.end_offset
        latest = self._snapshots.latest
        if offset > (latest if latest is not None else 0):
            path = self._snapshots.write(offset, self.producers.producers.values())
            self._unflushed.paths.add(path)

    def _fail(self, error: OSError) -> NoReturn:
        self.failure = f"{error.strerror or error}"
        _log.error("%s is offline: %s", self.directory, error)
        raise StorageError(self.directory, self.failure) from error

    # --- read --------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, upper_bound: int, at_least_one: bool = True
    ) -> FileSlice:
        """Whole batches from the one that holds ``offset``, below ``upper_bound``.

        At most ``max_bytes`` and never past the end of a segment; with ``at_least_one`` the first
        batch comes even if it is larger. An empty slice (length 0) says there is nothing to read
        yet. Raises KafkaError OFFSET_OUT_OF_RANGE outside [log start, log end]; StorageError.
        """
        if offset > self.log_end_offset or offset < self.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.tp} has offsets {self.log_start_offset} to {self.log_end_offset}, "
                f"not {offset}",
            )
        if offset >= upper_bound or offset == self.log_end_offset:
            return reading.empty_slice(self.segments, offset)
        try:
            return reading.slice_from(
                self.segments,
                self._bases,
                offset,
                max_bytes=max_bytes,
                upper_bound=upper_bound if upper_bound < self.log_end_offset else None,
                at_least_one=at_least_one,
            )
        except OSError as error:
            self._fail(error)
        except CorruptSegmentError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.tp}: {error}") from error

    # --- offsets -----------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Up to where read_committed consumers may read."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    def advance_high_watermark(self, offset: int) -> None:
        """Move the high watermark; it is kept within log start and log end."""
        self.high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.producers.advance_high_watermark(self.high_watermark)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers; (-1, -1) when unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """Note that leader epoch ``epoch`` begins at ``offset``."""
        self._epochs_changed(self.epochs.assign(epoch, offset))

    def _epochs_changed(self, changed: bool) -> None:
        if not changed:
            return
        path = self.directory / LEADER_EPOCH_CHECKPOINT
        try:
            replace_file(path, checkpoints.format_epochs(self.epochs.entries), durable=False)
        except OSError as error:
            self._fail(error)
        self._unflushed.paths.add(path)
        self._unflushed.directory_changed = True

    def offset_for_timestamp(self, timestamp: int) -> OffsetAndTime | None:
        """The first record at or after ``timestamp`` (ms), by offset; None when all are older."""
        found = timestamps.first_at_or_after(self.segments, timestamp, self.log_start_offset)
        return OffsetAndTime(*found) if found is not None else None

    def offset_of_max_timestamp(self) -> OffsetAndTime | None:
        """The first record with the greatest timestamp of all; None when none has one."""
        found = timestamps.youngest(self.segments)
        return OffsetAndTime(*found) if found is not None else None

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [start, end), for a read_committed fetch."""
        found: list[AbortedTransaction] = []
        for segment in self.segments[max(bisect_right(self._bases, start) - 1, 0) :]:
            entries, complete = segment.aborted.collect(start, end)
            found.extend(entries)
            if complete:
                break
        return found

    # --- deletion and truncation -------------------------------------------------------------

    def delete_records_before(self, offset: int) -> int:
        """Move the log start to ``offset``; return the log start. The files go with retention.

        Raises KafkaError OFFSET_OUT_OF_RANGE above the high watermark.
        """
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.tp} cannot start at {offset}, above high watermark {self.high_watermark}",
            )
        if offset > self.log_start_offset:
            self._start_at(offset)
        return self.log_start_offset

    def _start_at(self, offset: int) -> None:
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.recovery_point = max(self.recovery_point, offset)
        self._epochs_changed(self.epochs.truncate_from_start(offset))
        self.producers.advance_log_start(offset)

    def delete_old_segments(self, now_ms: int) -> list[Path]:
        """Give up the segments retention asks for; return the renamed files, to be unlinked
        after ``file.delete.delay.ms``.
        """
        picked = retention.pick(
            [
                retention.SegmentAge(s.base_offset, s.size, s.largest_timestamp)
                for s in self.segments
            ],
            retention.Limits(
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=self.high_watermark,
                retention_ms=self.config.retention_ms if self.config.delete else -1,
                retention_bytes=self.config.retention_bytes if self.config.delete else -1,
            ),
            now_ms,
        )
        removed, self._removed = self._removed, []
        if picked:
            reasons = ", ".join(f"{base} ({reason.value})" for base, reason in picked)
            _log.info("%s: deleting segments %s", self.tp, reasons)
            if len(picked) == len(self.segments):
                self.roll(now_ms)
            removed += self._remove_segments(len(picked))
            self._start_at(max(self.log_start_offset, self.segments[0].base_offset))
        return removed

    def _remove_segments(self, count: int, *, from_end: bool = False) -> list[Path]:
        """Take segments out of the log and rename their files; a reader's slices stay good."""
        gone = self.segments[-count:] if from_end else self.segments[:count]
        kept = self.segments[:-count] if from_end else self.segments[count:]
        self.segments = kept
        self._bases = [segment.base_offset for segment in kept]
        removed: list[Path] = []
        try:
            for segment in gone:
                removed += segment.rename(DELETED)
                removed += self._snapshots.mark_deleted(segment.base_offset)
        except OSError as error:
            self._fail(error)
        self._unflushed.directory_changed = True
        return removed

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Cut everything at and above ``offset``; False when there is nothing.

        A slice in flight across the cut stops being ``intact``.
        """
        if offset >= self.log_end_offset:
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_at(offset, now_ms=now_ms)
            return True
        surplus = len(self._bases) - bisect_right(self._bases, offset)
        if surplus:
            self._removed += self._remove_segments(surplus, from_end=True)
        try:
            offset = self.active.truncate_to(offset, now_ms)
            self.active.make_active()
            # Nobody may learn of the cut from epochs or offsets before it is on the device.
            self.active.file.sync()
        except OSError as error:
            self._fail(error)
        self._end_at(offset)
        self._rebuild_producers(now_ms)
        return True

    def _end_at(self, offset: int) -> None:
        self._unflushed.generation += 1
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self._epochs_changed(self.epochs.truncate_from_end(offset))

    def _rebuild_producers(self, now_ms: int) -> None:
        expiration_ms = self.config.producer_id_expiration_ms
        self.producers = loader.rebuild_producers(
            self.segments,
            self._snapshots,
            start=self.log_start_offset,
            end=self.log_end_offset,
            expire=(now_ms, expiration_ms),
        )
        self.producers.advance_high_watermark(self.high_watermark)

    def truncate_fully_at(self, offset: int, *, now_ms: int) -> None:
        """Drop everything and start again, empty, at ``offset``."""
        self._unflushed.generation += 1
        self._removed += self._remove_segments(len(self.segments))
        try:
            self._snapshots.remove_all()
            segment = Segment.create(self.directory, offset, self.config, now_ms)
        except OSError as error:
            self._fail(error)
        self.segments, self._bases = [segment], [offset]
        self.producers.restore([], offset)
        self.log_start_offset = self.high_watermark = offset
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self._epochs_changed(self.epochs.clear())

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers silent for ``producer.id.expiration.ms``; return how many."""
        return self.producers.expire(now_ms, self.config.producer_id_expiration_ms)

    # --- flush -------------------------------------------------------------------------------

    def flush_due(self, now_ms: int) -> bool:
        """True when ``flush.messages``, ``flush.ms`` or a roll asks for a flush."""
        messages = self.log_end_offset - self.recovery_point
        return self._unflushed.is_due(messages, self.config, now_ms)

    def flush_plan(self) -> FlushPlan:
        """The work that makes everything up to the present log end durable.

        Call ``plan.run()`` in a thread, then ``flushed(plan)`` on the loop. The plan holds its
        files itself: retention, truncation and deletion meanwhile do it no harm.
        """
        first = max(bisect_right(self._bases, self.recovery_point) - 1, 0)
        try:
            return self._unflushed.plan(
                self.segments[first:], self.directory, up_to=self.log_end_offset
            )
        except OSError as error:
            self._fail(error)

    def flushed(self, plan: FlushPlan, *, now_ms: int) -> None:
        """Take note that ``plan`` ran; after a truncation meanwhile it proves nothing.

        Raises StorageError, and takes the log out of service, when the plan met an error.
        """
        if plan.error is not None:
            self._fail(plan.error)
        if plan.generation == self._unflushed.generation:
            self.recovery_point = max(self.recovery_point, plan.up_to)
            self._unflushed.flushed_ms = now_ms

    def flush(self, *, now_ms: int) -> None:
        """Flush here and now. Blocks; for shutdown and tools. Raises StorageError."""
        if self.failure is not None:
            raise StorageError(self.directory, self.failure)
        plan = self.flush_plan()
        plan.run()
        self.flushed(plan, now_ms=now_ms)

    def close(self, *, clean: bool = True, now_ms: int = 0) -> None:
        """Close the log; clean: snapshot, trim the indexes, and put everything on the device."""
        if clean and self.failure is None:
            try:
                self._take_snapshot()
                for segment in self.segments:
                    segment.write_indexes()
                self.active.seal()
            except OSError as error:
                self._fail(error)
            self._unflushed.directory_changed = True
            self.flush(now_ms=now_ms)
        self.failure = "closed"
        self.segments, self._bases = [], []
