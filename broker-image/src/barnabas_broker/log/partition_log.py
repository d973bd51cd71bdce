"""The log of one partition: appends, reads, offsets, and the life of its segments.

One event loop owns all logs; nothing here is locked. What may block the loop for long (fsync,
unlink) is handed out as work for a thread: ``flush_plan`` and the paths that deletions return.

Offsets, in their order::

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset
    recovery_point   <= log_end_offset       everything below it is on the device

Invariants: segments are sorted, the last one is active and alone takes appends; every byte below
the size of a segment is part of a whole batch; producer state and leader epochs agree with the
bytes of the log; a read never crosses a segment and never ends inside a batch.

What an I/O error means is said by the health of the log directory, which all its logs share: full
(KAFKA_STORAGE_ERROR to appends, for a time) or offline (to everything, until the next start).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas_broker.invariants import violated
from barnabas_broker.log import appending, timestamps
from barnabas_broker.log.appending import AppendInfo as AppendInfo
from barnabas_broker.log.appending import ValidatedBatches
from barnabas_broker.log.batches import CorruptSegmentError, StoredBatch
from barnabas_broker.log.files import FileSlice
from barnabas_broker.log.health import lacks_room
from barnabas_broker.log.indexes import MAX_RELATIVE_OFFSET
from barnabas_broker.log.producer_state import Origin, Plan, Sequences
from barnabas_broker.log.segment import MAX_SEGMENT_SIZE, Appended, Segment
from barnabas_broker.log.segment_stats import CODEC_MASK
from barnabas_broker.log.segmented_log import SegmentedLog
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.records.batch import stamp


class OffsetAndTime(NamedTuple):
    """An offset found by time; ``leader_epoch`` is -1 when its batch carries none."""

    offset: int
    timestamp: int
    leader_epoch: int


PlainBatch = tuple[int, int, int]
"""A batch without producer id: its size in bytes, how many records, their latest timestamp."""


class PartitionLog(SegmentedLog):
    """See the module's docstring; construct with :meth:`open`."""

    __slots__ = ()

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
        health = self.health
        if not health.writable and (origin is Origin.CLIENT or not health.readable):
            self._refuse()
        buffer = batches.buffer
        first_offset = self.log_end_offset
        appended, sequenced = appending.stamp_batches(batches, first_offset, leader_epoch)
        plan = None
        if sequenced:
            if origin is Origin.CLIENT:
                original = appending.find_duplicate(self.producers, sequenced)
                if original is not None:
                    return AppendInfo(
                        original.first_offset,
                        original.last_offset,
                        original.timestamp,
                        self.log_start_offset,
                        original.timestamp,
                        duplicate=True,
                    )
            plan = self.producers.check(sequenced, origin)
        self._check_fits(len(buffer))
        if leader_epoch > self.epochs.latest:
            self.assign_epoch_start(leader_epoch, first_offset)
        self._write(buffer, appended, plan, batches.max_timestamp, now_ms)
        self._count(batches)
        assert self.log_end_offset > first_offset, violated("an append moves the log end")
        return AppendInfo(
            first_offset,
            self.log_end_offset - 1,
            now_ms if self.config.timestamp_type else -1,
            self.log_start_offset,
            batches.max_timestamp,
        )

    def append_plain(
        self,
        batch: memoryview,
        records: int,
        max_timestamp: int,
        *,
        leader_epoch: int,
        now_ms: int,
        sequences: Sequences | None = None,
    ) -> int:
        """`append_as_leader` for one uncompressed batch of a client; its first offset.

        It has no producer id, or `sequences` that the producer state says to follow.
        """
        if not self.health.writable:
            self._refuse()
        self._check_fits(len(batch))
        first_offset = self.log_end_offset
        stamp(batch, 0, base_offset=first_offset, leader_epoch=leader_epoch)
        if leader_epoch > self.epochs.latest:
            self.assign_epoch_start(leader_epoch, first_offset)
        size, last_offset = len(batch), first_offset + records - 1
        segment = self._segment_for(size, last_offset, max_timestamp, now_ms)
        try:
            segment.append(batch, [(size, last_offset, max_timestamp)])
        except OSError as error:
            self._fail(error)
        self.log_end_offset = self.producers.end_offset = last_offset + 1
        assert records > 0, violated("an append moves the log end")
        if sequences is not None:
            self.producers.went_on(sequences, last_offset, max_timestamp)
        if segment.stats is not None:
            segment.stats.add_plain(records, batch)
        return first_offset

    def append_run(
        self, data: bytearray, run: Sequence[PlainBatch], *, leader_epoch: int, now_ms: int
    ) -> int | None:
        """`append_plain` for a run of batches that fill `data`, with one write.

        None, with nothing appended, unless the result is certain to be that of single appends: not
        if the batches would not all go into the active segment, if there is no room for all, or if
        the log is offline. Single appends then raise the error. Never raises KafkaError.
        """
        if not self.health.writable:
            return None
        first_offset = offset = self.log_end_offset
        position, latest = 0, -1
        appended: list[Appended] = []
        for size, records, timestamp in run:
            stamp(data, position, base_offset=offset, leader_epoch=leader_epoch)
            position += size
            offset += records
            appended.append((size, offset - 1, timestamp))
            if timestamp > latest:
                latest = timestamp
        segment = self.segments.active
        if (
            leader_epoch > self.epochs.latest
            or (len(run) > 1 and not segment.file.size)  # Its first batch says when it began.
            or not segment.has_room_in_indexes(len(run))
            or self._must_roll(segment, position, offset - 1, latest, now_ms)
        ):
            return None
        try:
            segment.append(data, appended)
        except OSError as error:
            if not lacks_room(error):  # Without room for all there may be some for a few.
                self.health.failed(error)
            return None
        self.log_end_offset = self.producers.end_offset = offset
        assert offset > first_offset, violated("an append moves the log end")
        if segment.stats is not None:
            segment.stats.add_plain(offset - first_offset, data, batches=len(run))
        return first_offset

    def append_as_follower(
        self,
        buffer: bytes | bytearray | memoryview,
        *,
        now_ms: int,
        max_epoch: int | None = None,
    ) -> AppendInfo | None:
        """Append batches as the leader stored them; None when there is not one whole batch.

        A batch that is cut off at the end of the buffer is left out: the next fetch brings it. So
        are batches of an epoch newer than `max_epoch` and all behind: another leader wrote them.
        What the leader has is taken although `segment.bytes` has become smaller since.
        Raises KafkaError: CORRUPT_MESSAGE for a wrong CRC or length, OFFSET_OUT_OF_RANGE for
        offsets that do not continue the log; StorageError.
        """
        if not self.health.writable:
            self._refuse()
        view = memoryview(buffer)
        found = appending.whole_batches(view, self.tp, self.log_end_offset)
        if max_epoch is not None:
            newer = (at for at, batch in enumerate(found) if batch.leader_epoch > max_epoch)
            found = found[: next(newer, None)]
        if not found:
            return None
        appended, sequenced = appending.as_stored(found, view)
        assert max_epoch is None or found[-1].leader_epoch <= max_epoch, violated(
            "a follower appends nothing of a newer leader than its own"
        )
        plan = self.producers.check(sequenced, Origin.REPLICATION) if sequenced else None
        first_offset, last_offset = found[0].base_offset, found[-1].last_offset
        youngest = max(batch.max_timestamp for batch in found)
        whole = view[: found[-1].next_position]
        try:
            for batch in found:
                if batch.magic < 2:
                    self._epochs_changed(self.epochs.clear())
                elif batch.leader_epoch > self.epochs.latest:
                    self.assign_epoch_start(batch.leader_epoch, batch.base_offset)
            if last_offset - self.log_end_offset > MAX_RELATIVE_OFFSET:
                self.roll_at(first_offset, now_ms)
            self._write(whole, appended, plan, youngest, now_ms)
        except Exception:
            # An epoch without its records would win an election by log ends over more records.
            self._epochs_changed(self.epochs.truncate_from_end(self.log_end_offset))
            raise
        self._count_stored(found)
        return AppendInfo(first_offset, last_offset, -1, self.log_start_offset, youngest)

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
                    self._unflushed.directory_changed |= not segment.aborted.exists
                    segment.aborted.append(aborted)
        except OSError as error:
            self._fail(error)
        self.producers.end_offset = last_offset + 1

    def _count(self, batches: ValidatedBatches) -> None:
        stats = self.segments.active.stats
        saved_bytes = batches.saved_bytes
        if saved_bytes is None:
            self.segments.active.stats = None
        elif stats is not None:
            for _, header in batches.headers:
                stats.add(
                    header.record_count,
                    codec=header.attributes & CODEC_MASK,
                    saved_bytes=saved_bytes,
                    first_timestamp=header.base_timestamp,
                )

    def _count_stored(self, found: Sequence[StoredBatch]) -> None:
        """Count batches as the leader stored them; compressed ones are not decompressed for it."""
        active = self.segments.active
        for batch in found:
            if batch.magic < 2 or batch.attributes & CODEC_MASK:
                active.stats = None
            elif active.stats is not None:
                active.stats.add(
                    batch.record_count,
                    codec=0,
                    saved_bytes=0,
                    first_timestamp=batch.base_timestamp,
                )

    def _segment_for(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        """The active segment, a new one if this append must not go into the old."""
        segment = self.segments.active
        if self._must_roll(segment, size, last_offset, max_timestamp, now_ms):
            return self.roll(now_ms)
        return segment

    def _check_fits(self, size: int) -> None:
        if size > self.config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes do not fit in a segment of {self.config.segment_bytes}",
            )

    def _must_roll(
        self, segment: Segment, size: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        """Whether an append must not go into the active segment.

        What is true of a part of it, the first so many batches, is true of all: a run of batches
        that may go there as a whole could go there one by one.
        """
        config, filled = self.config, segment.file.size
        return (
            filled + size > config.segment_bytes
            or filled + size > MAX_SEGMENT_SIZE
            or segment.offsets.is_full
            or segment.times.is_full
            or not segment.fits(last_offset)
            or (
                filled > 0
                and segment.waited_ms(now_ms, max_timestamp) > config.segment_ms - segment.jitter_ms
            )
        )

    # --- read --------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, upper_bound: int, at_least_one: bool = True
    ) -> FileSlice:
        """Whole batches from the one that holds ``offset``, below ``upper_bound``.

        At most ``max_bytes`` and never past the end of a segment; with ``at_least_one`` the first
        batch comes even if it is larger. An empty slice (length 0) says there is nothing to read
        yet. Raises KafkaError OFFSET_OUT_OF_RANGE outside [log start, log end]; StorageError.
        """
        if not self.health.readable:
            self._refuse()
        if offset > self.log_end_offset or offset < self.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.tp} has offsets {self.log_start_offset} to {self.log_end_offset}, "
                f"not {offset}",
            )
        if offset >= upper_bound or offset == self.log_end_offset:
            return self.segments.empty_slice(offset)
        try:
            return self.segments.read(
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
        """The offset below which read_committed consumers may read."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    def advance_high_watermark(self, offset: int) -> None:
        """Move the high watermark; it is kept within log start and log end."""
        if offset < self.log_start_offset:
            offset = self.log_start_offset
        elif offset > self.log_end_offset:
            offset = self.log_end_offset
        self.high_watermark = offset
        self.producers.advance_high_watermark(offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers; (-1, -1) when unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

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
        return self.segments.aborted_transactions(start, end)
