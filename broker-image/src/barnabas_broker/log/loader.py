"""Loading a partition directory: the hands of the decision tables in ``recovery``.

Reads what is there, carries the decisions out, and hands over segments, leader epochs and
producer state that agree with the bytes of the log, never with a side file that is newer than it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NoReturn

from barnabas_broker.log import batches, checkpoints, recovery, splitting
from barnabas_broker.log.batches import CorruptSegmentError, StoredBatch
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.epochs import EpochEntry, LeaderEpochs
from barnabas_broker.log.files import (
    DataFile,
    add_suffix,
    list_directory,
    read_file,
    remove_file,
    rename,
    replace_file,
    sync_directory,
)
from barnabas_broker.log.health import lacks_room
from barnabas_broker.log.indexes import MAX_RELATIVE_OFFSET, CorruptIndexError
from barnabas_broker.log.markers import stored_producer_batch
from barnabas_broker.log.names import (
    DELETED,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    offset_of,
)
from barnabas_broker.log.producer_state import Origin, ProducerState
from barnabas_broker.log.recovery import (
    EndAction,
    FileAction,
    ScanResult,
    SegmentAction,
    SegmentFacts,
)
from barnabas_broker.log.recovery_progress import DirectoryProgress, SegmentScan
from barnabas_broker.log.segment import Segment
from barnabas_broker.log.snapshots import Snapshots
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.errors import KafkaError

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LoadedLog:
    """A partition's log as it was found and repaired; ``removed`` files are to be unlinked."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: ProducerState
    snapshots: Snapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    clean: bool
    #: the epochs differ from their file, which could not be written or need not be yet
    epochs_unwritten: bool
    removed: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed:
    """What the checkpoints of a directory hold of a log; the defaults are those of a new log."""

    #: the directory was left by a clean shutdown
    clean: bool = True
    recovery_point: int = 0
    log_start_offset: int = 0
    #: where a clean shutdown left the log, where that was noted
    clean_end: int | None = None
    #: below it compaction may have made gaps
    cleaned_to: int = 0


NEW: Final = Checkpointed()


class _StaleMarkerError(Exception):
    """The clean shutdown file was written for another state of the log."""


class _SegmentSplitError(Exception):
    """A segment was split, so that the directory has to be listed again."""


def load(
    directory: Path,
    config: LogConfig,
    known: Checkpointed,
    *,
    now_ms: int,
    progress: DirectoryProgress | None = None,
) -> LoadedLog:
    """Load, repair and open the log in ``directory``. Raises OSError."""
    while True:
        try:
            return _load(_Loader(directory, config, known, now_ms, progress))
        except _SegmentSplitError:
            # Each time there is one segment less that is too long.
            continue


def _load(loader: _Loader) -> LoadedLog:
    try:
        return loader.load()
    except (_StaleMarkerError, CorruptSegmentError) as error:
        _log.warning(
            "%s: Clean shutdown file does not match the log: %s; recovering all of it (row M3)",
            loader.directory.name, error,
        )  # fmt: skip
        return loader.unclean().load()


class _Loader:
    """One run of loading; the steps follow each other in ``load``."""

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        known: Checkpointed,
        now_ms: int,
        progress: DirectoryProgress | None,
    ) -> None:
        self.directory = directory
        self.config = config
        self.known = known
        self.now_ms = now_ms
        self.progress = progress
        self.epochs = LeaderEpochs()
        #: what leader-epoch-checkpoint says; None when there is none that can be read
        self.stored_epochs: list[EpochEntry] | None = None
        self.producers = ProducerState(config.producer_ids_max)
        self.producers_ready = False
        self.names: set[str] = set()
        self.snapshots = Snapshots(directory, ())
        self.removed: list[Path] = []
        self.unsynced_names = False
        self.epochs_unwritten = False

    def unclean(self) -> _Loader:
        """A loader that starts from the beginning and trusts nothing but the log start offset."""
        known = replace(self.known, clean=False, recovery_point=0, clean_end=None)
        return _Loader(self.directory, self.config, known, self.now_ms, self.progress)

    def load(self) -> LoadedLog:
        known = self.known
        self._settle_files()
        self._read_epochs()
        segments = self._open_segments()
        for segment in segments:
            segment.load_max_timestamp()
        end_offset = segments[-1].next_offset() if segments else None
        if known.clean and recovery.is_stale(known.clean_end, end_offset):
            raise _StaleMarkerError(
                f"it ends at offset {end_offset}, but was closed at {known.clean_end}"
            )
        log_start_offset = known.log_start_offset
        end = recovery.decide_end(
            end_offset=end_offset,
            log_start_offset=log_start_offset,
            recovery_point=known.recovery_point,
            clean=known.clean,
        )
        if end.action is EndAction.START_EMPTY:
            if segments:
                _log.warning(
                    "Log end below log start offset: partition=%s log_start_offset=%d; "
                        "deleting all segments (row %s)",
                    self.directory.name, log_start_offset, end.row,
                )  # fmt: skip
            self._drop(segments)
            self.epochs.clear()
            segments = [Segment.create(self.directory, log_start_offset, self.config, self.now_ms)]
        start = max(log_start_offset, segments[0].base_offset)
        self._finish_epochs(segments, start, end.log_end_offset)
        self._finish_producers(segments, start, end.log_end_offset)
        if self.unsynced_names:
            # What was dropped must not come back behind what will be appended.
            sync_directory(self.directory)
        return LoadedLog(
            segments, self.epochs, self.producers, self.snapshots,
            start, end.log_end_offset, max(end.recovery_point, start), known.clean,
            self.epochs_unwritten, self.removed,
        )  # fmt: skip

    # --- files -------------------------------------------------------------------------------

    def _settle_files(self) -> None:
        self.names = set(list_directory(self.directory)[0])
        swaps = []
        for decision in recovery.decide_files(self.names):
            if decision.action is FileAction.KEEP:
                continue
            path = self.directory / decision.name
            self.names.discard(decision.name)
            if decision.action is FileAction.DELETE:
                _log.info("%s: removing %s (row %s)", self.directory.name, path.name, decision.row)
                remove_file(path)
            elif decision.action is FileAction.COMPLETE:
                swaps.append(path)
        if swaps:
            self._complete_swaps(swaps)
            self.names = set(list_directory(self.directory)[0])
        self.snapshots = Snapshots(self.directory, self.names)

    def _complete_swaps(self, swaps: list[Path]) -> None:
        spans = [self._span(path) for path in swaps if path.name.endswith(LOG + SWAP)]
        bases = recovery.superseded(self._bases(), spans)
        replaced = set(bases)
        for name in list_directory(self.directory)[0]:
            # Snapshots that begin no segment any more go with the strays.
            if offset_of(name) in replaced and not name.endswith((SWAP, SNAPSHOT)):
                remove_file(self.directory / name)
        for path in swaps:
            rename(path, path.with_name(path.name.removesuffix(SWAP)))
        self.unsynced_names = True

    def _span(self, path: Path) -> tuple[int, int]:
        base = offset_of(path.name) or 0
        end = base
        for batch in batches.walk(DataFile.open(path, writable=False)):
            end = batch.last_offset + 1
        return base, end

    def _bases(self) -> list[int]:
        offsets = (offset_of(name) for name in self.names if name.endswith(LOG))
        return sorted(offset for offset in offsets if offset is not None)

    def _drop(self, segments: list[Segment]) -> None:
        self.unsynced_names |= bool(segments)
        # From the end, so that what is left when this is interrupted is one run of segments.
        for segment in reversed(segments):
            self.removed.extend(add_suffix(segment.paths, DELETED))
            self.removed.extend(self.snapshots.mark_deleted(segment.base_offset))

    # --- segments ----------------------------------------------------------------------------

    def _open_segments(self) -> list[Segment]:
        bases = self._bases()
        opened: list[Segment] = []
        for number, base in enumerate(bases):
            segment = Segment.open(self.directory, base, self.config, self.now_ms)
            facts = self._facts(
                segment,
                next_base_offset=bases[number + 1] if number + 1 < len(bases) else None,
            )
            decision = recovery.decide_segment(facts)
            opened.append(segment)
            if decision.action is SegmentAction.TRUST:
                continue
            _log.info(
                "%s: scanning segment %d because %s (row %s)",
                self.directory.name, base, decision.reason, decision.row,
            )  # fmt: skip
            self._prepare_producers(opened[:-1], base)
            with SegmentScan(self.progress) as scan:
                result = self._recover(segment, facts.next_base_offset, scan)
            if (
                result is ScanResult.WHOLE
                and facts.may_be_short
                # The topic may have been switched to deletion since it was compacted.
                and not (self.config.compact or bases[number + 1] <= self.known.cleaned_to)
                and segment.fits(bases[number + 1] - 1)
                and segment.next_offset() < bases[number + 1]
            ):
                result = ScanResult.SHORT
            after = recovery.decide_after_scan(result)
            if after.split:
                self._split(segment, after.row)
            if facts.will_be_trusted:
                segment.sync_indexes()
            if after.empty_segment:
                segment.truncate_to(base, self.now_ms)
            if after.drop_later:
                later = [
                    Segment.open(self.directory, base, self.config, self.now_ms)
                    for base in bases[number + 1 :]
                ]
                self._drop(later)
                break
        return opened

    def _split(self, segment: Segment, row: str) -> NoReturn:
        made = splitting.split(self.directory, segment.base_offset)
        _log.warning(
            "%s: splitting segment %d into %s, whose offsets fit (row %s)",
            self.directory.name, segment.base_offset, ", ".join(map(str, made)), row,
        )  # fmt: skip
        raise _SegmentSplitError

    def _facts(self, segment: Segment, *, next_base_offset: int | None) -> SegmentFacts:
        missing = tuple(
            suffix
            for suffix in (OFFSET_INDEX, TIME_INDEX)
            if f"{segment.base_offset:020d}{suffix}" not in self.names
        )
        corruption = None
        overflows = False
        try:
            if f"{segment.base_offset:020d}{TRANSACTION_INDEX}" in self.names:
                segment.aborted.load()
            if self.known.clean and next_base_offset is None and not missing:
                # The end of the log is looked for in them next: one read instead of three.
                segment.load_indexes()
            if not missing and (self.known.clean or next_base_offset is not None):
                segment.check_indexes()
                # Only where there is room for that: it reads the end of the file.
                room = (next_base_offset or 0) - 1 - segment.base_offset > MAX_RELATIVE_OFFSET
                overflows = room and not segment.fits(segment.next_offset() - 1)
        except (CorruptIndexError, CorruptSegmentError) as error:
            corruption = str(error)
        return SegmentFacts(
            base_offset=segment.base_offset,
            next_base_offset=next_base_offset,
            clean=self.known.clean,
            recovery_point=self.known.recovery_point,
            missing_indexes=missing,
            overflows=overflows,
            corruption=corruption,
        )

    def _recover(
        self, segment: Segment, next_base_offset: int | None, scan: SegmentScan
    ) -> ScanResult:
        """Scan a segment; one whose scan is given up is scanned again by the next start.

        Its indexes hold a part of it by then, and below the recovery point they would be trusted.
        """
        try:
            return self._scan(segment, next_base_offset, scan)
        except BaseException:
            remove_file(segment.offsets.path)
            raise

    def _scan(
        self, segment: Segment, next_base_offset: int | None, scan: SegmentScan
    ) -> ScanResult:
        """Scan a segment: rebuild its indexes, epochs and producers, truncate what is invalid."""
        rebuilt = segment.rebuild()
        result = ScanResult.WHOLE
        end = 0
        last_offset = segment.base_offset - 1
        try:
            for batch, data in batches.scan(segment.file):
                if batch.last_offset < segment.base_offset:
                    result = ScanResult.OUT_OF_RANGE
                    break
                if next_base_offset is not None and batch.last_offset >= next_base_offset:
                    # No checksum covers a base offset. Readers would skip all that follows.
                    raise CorruptSegmentError(
                        batch.position, f"offset {batch.last_offset} is of the next segment"
                    )
                if batch.base_offset <= last_offset:
                    raise CorruptSegmentError(
                        batch.position, f"offset {batch.base_offset} after offset {last_offset}"
                    )
                if not segment.fits(batch.last_offset):
                    if next_base_offset is not None:
                        return ScanResult.OVERFLOW
                    raise CorruptSegmentError(
                        batch.position, f"offset {batch.last_offset} is out of the segment's reach"
                    )
                last_offset = batch.last_offset
                rebuilt.add(batch)
                self._replay(segment, batch, data)
                end = batch.next_position
                scan.advance(end)
        except (CorruptSegmentError, ValueError) as error:
            _log.warning("%s: segment %d %s", self.directory.name, segment.base_offset, error)
            result = ScanResult.TORN
        if result is ScanResult.WHOLE and end < segment.size:
            result = ScanResult.TORN
        if result is ScanResult.TORN:
            _log.warning(
                "Truncating segment: partition=%s bytes=%d segment=%d position=%d",
                self.directory.name, segment.size - end, segment.base_offset, end,
            )  # fmt: skip
        rebuilt.finish(end)
        return result

    def _replay(self, segment: Segment, batch: StoredBatch, data: memoryview) -> None:
        if batch.magic < 2:
            return
        if batch.leader_epoch > self.epochs.latest:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        for aborted in replay_producer(self.producers, batch, data):
            segment.aborted.append(aborted)

    # --- epochs ------------------------------------------------------------------------------

    def _read_epochs(self) -> None:
        if LEADER_EPOCH_CHECKPOINT not in self.names:
            self.stored_epochs = None if self._bases() else []
            return
        path = self.directory / LEADER_EPOCH_CHECKPOINT
        try:
            self.epochs = LeaderEpochs(checkpoints.parse_epochs(read_file(path)))
            self.stored_epochs = self.epochs.entries
        except checkpoints.MalformedCheckpointError as error:
            _log.warning("%s: %s, rebuilding it from the log", path, error)

    def _finish_epochs(self, segments: Sequence[Segment], start: int, end: int) -> None:
        if self.stored_epochs is None:
            self.epochs = LeaderEpochs()
            for segment in segments:
                for batch in batches.walk(segment.file):
                    if batch.leader_epoch > self.epochs.latest:
                        self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self.epochs.truncate_from_start(start)
        self.epochs.truncate_from_end(end)
        if self.epochs.entries == self.stored_epochs:
            return
        if self.known.clean and self.stored_epochs is not None:
            # Only cut to what the log holds, as every load would cut them: they are written with
            # the next epoch or flush. Two syncs for each empty partition took longest of a start.
            self.epochs_unwritten = True
            return
        try:
            # After an unclean stop the next flush syncs it with all else that lies beside the log.
            replace_file(
                self.directory / LEADER_EPOCH_CHECKPOINT,
                checkpoints.format_epochs(self.epochs.entries),
                durable=self.known.clean,
            )
        except OSError as error:
            # A full disk is still to be read from; the log writes them when there is room.
            if not lacks_room(error):
                raise
            self.epochs_unwritten = True

    # --- producers ---------------------------------------------------------------------------

    def _prepare_producers(self, before: list[Segment], offset: int) -> None:
        """Bring the producer state up to ``offset``, where a scan begins."""
        if not self.producers_ready:
            self.producers = self._rebuilt_producers(before, self.known.log_start_offset, offset)
            self.producers_ready = True

    def _rebuilt_producers(
        self, segments: Sequence[Segment], start: int, end: int
    ) -> ProducerState:
        return rebuild_producers(
            segments,
            self.snapshots,
            start=start,
            end=end,
            config=self.config,
            now_ms=self.now_ms,
        )

    def _finish_producers(self, segments: Sequence[Segment], start: int, end: int) -> None:
        self.unsynced_names |= self.snapshots.remove_above(end)
        self.snapshots.remove_at_most(start)
        if not self.producers_ready and self.known.clean and self.snapshots.latest is None:
            # A log that never had producer state was written by a broker before 0.11, or is new;
            # scanning all of it to find none would only cost time (Apache skips this too).
            self.producers.restore([], end)
        elif not self.producers_ready or self.producers.end_offset > end:
            self.producers = self._rebuilt_producers(segments, start, end)
        self.producers.end_offset = end
        self.producers.advance_log_start(start)
        self.snapshots.remove_strays(segment.base_offset for segment in segments)
        if end > start and self.snapshots.latest != end:
            self.snapshots.write(end, self.producers.producers.values())


def rebuild_producers(
    segments: Sequence[Segment],
    snapshots: Snapshots,
    *,
    start: int,
    end: int,
    config: LogConfig,
    now_ms: int,
) -> ProducerState:
    """The producer state at ``end``: the newest snapshot at or below it, and the log after that.

    Producers that were silent since the snapshot for ``producer.id.expiration.ms`` are left out.
    """
    state = ProducerState(config.producer_ids_max)
    found = snapshots.newest_at_most(end)
    if found is None:
        state.restore([], start)
    else:
        snapshot_offset, entries = found
        state.restore(entries, snapshot_offset)
        state.expire(now_ms, config.producer_id_expiration_ms)
    ends = [segment.base_offset for segment in segments[1:]] + [end]
    for segment, segment_end in zip(segments, ends, strict=bool(segments)):
        if segment_end <= state.end_offset:
            continue
        for batch in segment.batches_from(state.end_offset):
            if batch.last_offset >= end:
                break
            data = segment.file.read(batch.position, batch.size) if batch.is_control else None
            replay_producer(state, batch, data)
    state.end_offset = end
    return state


def replay_producer(
    state: ProducerState, batch: StoredBatch, data: bytes | memoryview | None
) -> list[AbortedTransaction]:
    """Update the producer state from a stored batch; returns transaction index entries."""
    if batch.producer_id < 0:
        state.end_offset = batch.last_offset + 1
        return []
    try:
        plan = state.check([stored_producer_batch(batch, data)], Origin.REPLICATION)
    except KafkaError as error:
        # The leader accepted it once; the log is the truth, not this state.
        _log.warning("Batch left out of the producer state: offset=%d %s", batch.base_offset, error)
        return []
    return state.commit(plan, batch.last_offset + 1)
