"""What a partition's log is made of: its segments, side files, and their life on disk.

The lower half of :class:`~barnabas_broker.log.partition_log.PartitionLog`, which adds appends and
reads. Here the files come and go: opening, rolling, retention, truncation, flush and close. The
invariants are those of the upper half's docstring.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn, Self
from uuid import UUID

from barnabas_broker.invariants import violated
from barnabas_broker.log import checkpoints, loader, partition_metadata, retention
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.epochs import LeaderEpochs
from barnabas_broker.log.files import (
    add_suffix,
    make_partition_directory,
    remove_files,
    remove_suffix,
    replace_file,
    sync_directory,
)
from barnabas_broker.log.flushing import FlushPlan, Unflushed
from barnabas_broker.log.health import DirectoryHealth, Finding, StorageError, lacks_room
from barnabas_broker.log.log_segments import LogSegments
from barnabas_broker.log.names import (
    CLEANED,
    DELETED,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    SEGMENT_SUFFIXES,
    SWAP,
    segment_file,
)
from barnabas_broker.log.producer_state import ProducerState
from barnabas_broker.log.recovery_progress import DirectoryProgress
from barnabas_broker.log.segment import Segment, rename_segment_files
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition, uuid_to_base64

_log = logging.getLogger(__name__)


CLOSED: Final = "closed"


class SegmentedLog:
    """The files of one partition's log; construct with :meth:`open`."""

    __slots__ = (
        "_epochs_unwritten",
        "_removed",
        "_snapshots",
        "_unflushed",
        "busy",
        "cleaned_to",
        "config",
        "directory",
        "durable_offset",
        "epochs",
        "health",
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
        self,
        directory: Path,
        tp: TopicPartition,
        config: LogConfig,
        loaded: loader.LoadedLog,
        health: DirectoryHealth,
    ) -> None:
        self.directory = directory
        self.tp = tp
        self.config = config
        self.segments = LogSegments(loaded.segments)
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self._snapshots = loaded.snapshots
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.high_watermark = loaded.log_start_offset
        self.recovery_point = loaded.recovery_point
        #: everything below it is on the device; its indexes need not be, unlike those below
        #: the recovery point
        self.durable_offset = loaded.recovery_point
        self.topic_id: UUID | None = None
        #: up to where compaction has come; None before the first time
        self.cleaned_to: int | None = None
        #: being cut in a thread: retention and compaction come another time
        self.busy = False
        #: of the log directory; it is shared with all that lies there
        self.health = health
        self._epochs_unwritten = loaded.epochs_unwritten
        self._removed = loaded.removed
        self._unflushed = Unflushed()

    @classmethod
    def open(
        cls,
        directory: Path,
        tp: TopicPartition,
        config: LogConfig,
        known: loader.Checkpointed = loader.NEW,
        *,
        now_ms: int,
        topic_id: UUID | None = None,
        health: DirectoryHealth | None = None,
        progress: DirectoryProgress | None = None,
    ) -> Self:
        """Open the log in ``directory``, creating and repairing what is needed.

        The high watermark starts at the log start offset; the owner of the replica advances it to
        the checkpointed one. Raises OSError, and KafkaError INCONSISTENT_TOPIC_ID when
        partition.metadata names another topic id.
        """
        new = not directory.exists()
        if new:
            make_partition_directory(directory)
            known = replace(known, clean=True)
        loaded = loader.load(directory, config, known, now_ms=now_ms, progress=progress)
        clean = loaded.clean
        log = cls(directory, tp, config, loaded, health or DirectoryHealth(directory.parent))
        log._unflushed.flushed_ms = now_ms
        log._unflushed.directory_changed = log._unflushed.created = new or not clean
        log._unflushed.segments_changed = new or not clean
        if not clean:
            # What the last process wrote beside the log may never have been synced.
            log._unflushed.names |= {
                LEADER_EPOCH_CHECKPOINT,
                PARTITION_METADATA,
                *(log._snapshots.path(offset).name for offset in log._snapshots.offsets),
            }
        log.topic_id = partition_metadata.load(directory, clean=clean)
        log.adopt_topic_id(topic_id)
        log.segments.load_stats(
            directory,
            up_to=log.log_end_offset if clean else known.recovery_point,
            log_end_offset=log.log_end_offset,
        )
        return log

    # --- identity ----------------------------------------------------------------------------

    def adopt_topic_id(self, topic_id: UUID | None) -> None:
        """Check that the log is that of ``topic_id``, and note it where it was not known.

        None and the zero id, of a cluster without topic ids, agree with everything. Raises
        KafkaError INCONSISTENT_TOPIC_ID.
        """
        if topic_id is None or not topic_id.int or topic_id == self.topic_id:
            return
        if self.topic_id is not None:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self.tp} belongs to topic id {uuid_to_base64(self.topic_id)},"
                f" not {uuid_to_base64(topic_id)}",
            )
        self.assign_topic_id(topic_id)

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Write the topic's id beside the data, before any data is written."""
        partition_metadata.write(self.directory, topic_id)
        self._unflushed.names.add(PARTITION_METADATA)
        self._unflushed.directory_changed = True
        self.topic_id = topic_id

    def moved_to(self, directory: Path) -> None:
        """Follow a rename of the directory, which the caller has done."""
        self.directory = directory
        self._snapshots.directory = directory
        self.segments.move_to(directory)

    @property
    def active(self) -> Segment:
        return self.segments.active

    @property
    def size(self) -> int:
        """Bytes in all ``.log`` files."""
        return self.segments.size

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch in the log or assigned to it; -1 when there is none."""
        return self.epochs.latest

    # --- segments ----------------------------------------------------------------------------

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
            self._unflushed.seal(active.base_offset)
            active.seal()
            self._take_snapshot()
            segment = self._new_segment(base, now_ms)
        except OSError as error:
            self._fail(error)
        self.segments.add(segment)
        assert self.active.base_offset == self.log_end_offset, violated(
            "a new segment begins at the log end"
        )
        self._unflushed.segments_changed = self._unflushed.rolled = True
        self._unflushed.directory_changed = True
        self.segments.write_stats(self.directory)
        return segment

    def _new_segment(self, base: int, now_ms: int) -> Segment:
        """A segment with all its files, or none of them. Raises OSError.

        When there is room again the active segment may go on beyond `base`: a file that begins
        there would have the next start take for torn what was acknowledged meanwhile.
        """
        try:
            return Segment.create(self.directory, base, self.config, now_ms)
        except OSError:
            remove_files(segment_file(self.directory, base, kind) for kind in SEGMENT_SUFFIXES)
            raise

    def roll_at(self, offset: int, now_ms: int) -> None:
        """Move the log end to an offset beyond it, and start a segment there.

        No record lies between: compaction removed them on the leader. The offsets above the gap do
        not fit in a segment that begins below it, and no record may get an offset in the gap.
        """
        self.log_end_offset = self.producers.end_offset = offset
        self.roll(now_ms)

    def _take_snapshot(self) -> None:
        offset = self.producers.end_offset
        latest = self._snapshots.latest
        if offset > (latest if latest is not None else 0):
            path = self._snapshots.write(offset, self.producers.producers.values())
            self._unflushed.names.add(path.name)
            self._unflushed.directory_changed = True

    @property
    def failure(self) -> str | None:
        """Why the log cannot be read; None while it can, also with a full disk."""
        return None if self.health.readable else self.health.reason

    def _fail(self, error: OSError) -> NoReturn:
        self.health.failed(error)
        raise StorageError(self.directory, error.strerror or str(error)) from error

    def _refuse(self) -> NoReturn:
        raise StorageError(self.directory, self.health.reason)

    # --- leader epochs ------------------------------------------------------------------------

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """Note that leader epoch ``epoch`` begins at ``offset``."""
        self._epochs_changed(self.epochs.assign(epoch, offset))

    def _epochs_changed(self, changed: bool) -> None:
        """Write the epochs if they changed, or if a full disk refused an earlier write."""
        if not (changed or self._epochs_unwritten):
            return
        path = self.directory / LEADER_EPOCH_CHECKPOINT
        try:
            replace_file(path, checkpoints.format_epochs(self.epochs.entries), durable=False)
        except OSError as error:
            self._epochs_unwritten = True
            if not lacks_room(error):
                self._fail(error)
            self.health.failed(error)
            return
        self._epochs_unwritten = False
        self._unflushed.names.add(LEADER_EPOCH_CHECKPOINT)
        self._unflushed.directory_changed = True

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
            assert self.log_start_offset <= self.high_watermark, violated(
                "nothing above the high watermark is deleted"
            )
        return self.log_start_offset

    def _start_at(self, offset: int) -> None:
        assert offset >= self.log_start_offset, violated("the log start only grows")
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self._unflushed.segments_changed |= offset > self.recovery_point
        self.recovery_point = max(self.recovery_point, offset)
        self.durable_offset = max(self.durable_offset, offset)
        self._epochs_changed(self.epochs.truncate_from_start(offset))
        self.producers.advance_log_start(offset)
        assert self.high_watermark >= offset, violated("the high watermark is within the log")
        assert self.recovery_point >= offset, violated("what was deleted needs no recovery")

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
        if len(picked) == len(self.segments) and not self._has_rolled(now_ms):
            picked.pop()
        if picked:
            reasons = ", ".join(f"{base} ({reason.value})" for base, reason in picked)
            _log.info("%s: deleting segments %s", self.tp, reasons)
            self._removed += self._remove_segments(len(picked))
            assert self.segments, violated("a log has an active segment")
            assert self.segments[0].base_offset <= self.high_watermark, violated(
                "retention removes nothing above the high watermark"
            )
            self._start_at(max(self.log_start_offset, self.segments[0].base_offset))
        removed, self._removed = self._removed, []
        return removed

    def _has_rolled(self, now_ms: int) -> bool:
        """Roll; False without room for it, which the deletion of older segments makes."""
        try:
            self.roll(now_ms)
        except StorageError:
            if not self.health.readable:
                raise
            return False
        return True

    def _remove_segments(self, count: int, *, from_end: bool = False) -> list[Path]:
        """Take segments out of the log and rename their files; open slices stay readable.

        If that fails the log keeps all segments.
        """
        # Whatever is left when this is interrupted must be one run of segments.
        gone = self.segments[: -count - 1 : -1] if from_end else self.segments[:count]
        kept = self.segments[:-count] if from_end else self.segments[count:]
        assert len(gone) == count, violated("only segments of the log are removed")
        try:
            removed = [it for one in gone for it in self._snapshots.mark_deleted(one.base_offset)]
            removed += add_suffix([path for segment in gone for path in segment.paths], DELETED)
        except OSError as error:
            self._fail(error)
        self.segments = LogSegments(kept)
        self._unflushed.directory_changed = True
        return removed

    def replace_segments(self, replaced: Sequence[int], now_ms: int) -> list[Path]:
        """Put the ``*.cleaned`` segment named after the first of ``replaced`` in their place.

        ``replaced`` are base offsets of neighbours below the active segment. Returns the files of
        the old segments, renamed, to be unlinked once the directory is synced and
        ``file.delete.delay.ms`` is over; readers and flushes under way stay good. Raises
        ValueError, nothing touched, when the log does not have these segments (any more).
        """
        first = self.segments.index_of_run(replaced)
        end = first + len(replaced)
        base = replaced[0]
        removed: list[Path] = []
        try:
            # First, as it takes descriptors: what is renamed has to be in the log.
            segment = Segment.open(self.directory, base, self.config, now_ms, suffix=CLEANED)
            segment.load_max_timestamp()
            segment.aborted.load()
            # Each rename leaves a state that a start knows: up to the last of the first kind it
            # takes the old segments, from then on it completes the new one.
            rename_segment_files(self.directory, base, CLEANED, SWAP)
            for old in self.segments[first:end]:
                removed += add_suffix(old.paths, DELETED)
                if old.base_offset != base:
                    removed += self._snapshots.mark_deleted(old.base_offset)
            rename_segment_files(self.directory, base, SWAP, "")
            segment.moved_to(self.directory)
        except OSError as error:
            self._fail(error)
        self.segments = self.segments.replaced(first, end, segment)
        self._unflushed.directory_changed = True
        return removed

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Truncate the log to ``offset``; False when there is nothing at or above it. Blocks.

        None of the removed records can come back once this has returned, and no request may see the
        truncation in epochs or offsets before that. A slice that reaches across it is no longer
        ``intact``. The owner of the log writes the recovery point (`LogDirectories.truncate`).
        """
        if offset >= self.log_end_offset:
            # An epoch this broker led without writing goes all the same: a follower that went on
            # naming it would get for ever where it ended elsewhere.
            self._epochs_changed(self.epochs.truncate_from_end(self.log_end_offset))
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_at(offset, now_ms=now_ms)
            return True
        segments, removed = self.segments, list[Path]()
        surplus = len(segments) - segments.floor(offset) - 1
        try:
            # First, as it reads files: of what is cut nothing may pass for a duplicate afterwards.
            producers = self._producers_at(offset, now_ms)
            changed = self._snapshots.remove_above(offset)
            removed = self._remove_segments(surplus, from_end=True) if surplus else []
            if changed or surplus:
                sync_directory(self.directory)
            offset = self.active.truncate_to(offset, now_ms)
            assert offset < self.log_end_offset, violated("a truncation lowers the log end")
            self.active.file.sync()
        except OSError as error:
            self._take_back(segments, removed)
            self._fail(error)
        self._removed += removed
        producers.end_offset = offset
        producers.advance_high_watermark(min(self.high_watermark, offset))
        self.producers = producers
        self._end_at(offset)
        try:
            self.active.make_active()
        except OSError as error:
            self._fail(error)
        return True

    def _take_back(self, segments: LogSegments, removed: Sequence[Path]) -> None:
        """Restore segments after a failed removal, as without room. A flush syncs the names."""
        if not removed:
            return
        self._unflushed.generation += 1
        self.segments = segments
        self.recovery_point = min(self.recovery_point, segments[0].base_offset)
        self.durable_offset = min(self.durable_offset, segments[0].base_offset)
        self._unflushed.committed_base = -1
        try:
            remove_suffix(reversed(removed), DELETED)
        except OSError as error:  # The next start would miss what is read and written here.
            self.health.found(Finding.BROKEN, error.strerror or str(error))

    def _end_at(self, offset: int) -> None:
        self._unflushed.generation += 1
        self._unflushed.segments_changed = True
        self.log_end_offset = offset
        # As Kafka's `UnifiedLog.truncateTo`: records may have been deleted above the cut.
        self.log_start_offset = min(self.log_start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.durable_offset = min(self.durable_offset, offset)
        self._unflushed.committed_base = -1
        self.high_watermark = min(self.high_watermark, offset)
        if self.cleaned_to is not None:
            self.cleaned_to = min(self.cleaned_to, offset)
        self._epochs_changed(self.epochs.truncate_from_end(offset))
        assert self.high_watermark <= offset, violated("the high watermark is within the log")
        assert self.durable_offset <= offset, violated("what was cut off is not durable")
        assert self.recovery_point <= offset, violated("the recovery point is within the log")

    def _producers_at(self, offset: int, now_ms: int) -> ProducerState:
        """The producer state below an offset at which the log is about to be cut."""
        return loader.rebuild_producers(
            [segment for segment in self.segments if segment.base_offset <= offset],
            self._snapshots,
            start=min(self.log_start_offset, offset),
            end=offset,
            config=self.config,
            now_ms=now_ms,
        )

    def truncate_fully_at(self, offset: int, *, now_ms: int) -> None:
        """Delete all segments and start again, empty, at ``offset``; keep them if that fails."""
        segments, removed = self.segments, list[Path]()
        self._unflushed.generation += 1
        self._unflushed.segments_changed = True
        try:
            self._snapshots.remove_above(-1)
            removed = self._remove_segments(len(segments), from_end=True)
            sync_directory(self.directory)
            segment = self._new_segment(offset, now_ms)
        except OSError as error:
            self._take_back(segments, removed)
            self._fail(error)
        self._removed += removed
        self.segments = LogSegments([segment])
        self.producers.restore([], offset)
        self.log_start_offset = self.high_watermark = offset
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.durable_offset = min(self.durable_offset, offset)
        self._unflushed.committed_base = -1
        self.cleaned_to = None
        assert self.recovery_point <= offset, violated("the recovery point is within the log")
        self._epochs_changed(self.epochs.clear())

    @property
    def truncations(self) -> int:
        """How often the end of the log was truncated."""
        return self._unflushed.generation

    def take_over(self, other: SegmentedLog, *, now_ms: int) -> None:
        """Take the state of ``other``, whose batches have been copied here.

        Producers are taken from its state, not from the batches: some are known from snapshots
        only. Raises StorageError.
        """
        if self.log_start_offset < other.log_start_offset:
            self._start_at(other.log_start_offset)
        self.config = other.config
        self.producers = other.producers
        if self.log_end_offset < other.log_end_offset:
            # Compaction took the last batch; its offset is not to be given again.
            self.roll_at(other.log_end_offset, now_ms)
        self.epochs = LeaderEpochs(other.epochs.entries)
        self._epochs_changed(True)
        try:
            self._take_snapshot()
        except OSError as error:
            self._fail(error)
        self.high_watermark = other.high_watermark
        self.cleaned_to = other.cleaned_to
        self.adopt_topic_id(other.topic_id)

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
        unflushed = self._unflushed
        unflushed.reclaim()
        changed = self.recovery_point < self.log_end_offset or unflushed.segments_changed
        start = min(self.recovery_point, unflushed.sealed)
        segments = self.segments.from_floor(start) if changed else []
        self._epochs_changed(False)
        try:
            plan = unflushed.plan(segments, self.directory, up_to=self.log_end_offset)
        except OSError as error:
            self._fail(error)
        plan.health = self.health
        return plan

    def flushed(self, plan: FlushPlan, *, now_ms: int) -> None:
        """As ``committed``, and the indexes are durable too."""
        self.committed(plan)
        self._unflushed.succeeded(plan)
        if plan.generation == self._unflushed.generation:
            self.recovery_point = max(self.recovery_point, plan.up_to)
            self._unflushed.flushed_ms = now_ms

    def commit_plan(self) -> FlushPlan:
        """The least work that makes every record up to the present log end durable.

        That is their bytes, and the names of the files and the directory they are in. Run it as a
        flush plan, then call ``committed(plan)``. Raises StorageError for a log out of service.
        """
        if self.failure is not None:
            raise StorageError(self.directory, self.failure)
        unsynced = self.segments.from_floor(self.durable_offset)
        plan = self._unflushed.commit_plan(unsynced, self.directory, up_to=self.log_end_offset)
        plan.health = self.health
        return plan

    def committed(self, plan: FlushPlan) -> None:
        """Advance the durable offset after ``plan`` ran, unless the log was truncated meanwhile.

        Raises StorageError, and takes the log out of service, when the plan met an error.
        """
        if plan.error is not None:
            self._unflushed.reclaim()
            self._fail(plan.error)
        if plan.generation == self._unflushed.generation:
            self.durable_offset = max(self.durable_offset, plan.up_to)
            if plan.base_offset >= 0:
                self._unflushed.committed_base = plan.base_offset

    def flush(self, *, now_ms: int) -> None:
        """Flush here and now. Blocks; for shutdown and tools. Raises StorageError."""
        if not self.health.readable:
            self._refuse()
        plan = self.flush_plan()
        plan.run()
        self.flushed(plan, now_ms=now_ms)

    def seal(self, *, now_ms: int) -> None:
        """Bring the log to the device as a clean stop leaves it: with a snapshot, indexes trimmed.

        Where all of it is there, nothing is synced: most logs of a broker that stops are idle.
        Blocks. Raises StorageError.
        """
        if not self.health.readable:
            self._refuse()
        self._unflushed.reclaim()
        try:
            self._take_snapshot()
            changed = [segment.write_indexes() for segment in self.segments[:-1]]
            changed.append(self.active.seal())
        except OSError as error:
            self._unflushed.segments_changed = True
            self._fail(error)
        self._unflushed.segments_changed |= any(changed)
        behind = self.recovery_point < self.log_end_offset
        # Behind, a plan may have been made that never ran, and that knew of new files.
        self._unflushed.directory_changed |= self.segments.write_stats(self.directory) or behind
        self._epochs_changed(False)
        if behind or self._unflushed.anything:
            self.flush(now_ms=now_ms)
        if self._epochs_unwritten:
            self._refuse()

    def close(self, *, clean: bool = True, now_ms: int = 0) -> None:
        """Close the log; clean: seal it."""
        if clean and self.health.readable:
            self.seal(now_ms=now_ms)
        self.health = DirectoryHealth.gone(self.health.path, CLOSED)
        self.segments = LogSegments([])
