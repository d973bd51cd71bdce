"""Loading a partition directory: the hands of the decision tables in ``recovery``.

Reads what is there, carries the decisions out, and hands over segments, leader epochs and
producer state that agree with the bytes of the log, never with a side file that is newer than it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from barnabas_broker.log import batches, checkpoints, recovery
from barnabas_broker.log.batches import CorruptSegmentError, StoredBatch
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.epochs import LeaderEpochs
from barnabas_broker.log.files import DataFile, replace_file
from barnabas_broker.log.indexes import CorruptIndexError
from barnabas_broker.log.markers import stored_producer_batch
from barnabas_broker.log.names import (
    DELETED,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    SWAP,
    TIME_INDEX,
    offset_of,
    segment_file,
)
from barnabas_broker.log.producer_state import Origin, ProducerState
from barnabas_broker.log.recovery import (
    EndAction,
    FileAction,
    ScanResult,
    SegmentAction,
    SegmentFacts,
)
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
    removed: list[Path] = field(default_factory=list)


def load(
    directory: Path,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    now_ms: int,
) -> LoadedLog:
    """Load, repair and open the log in ``directory``. Raises OSError."""
    return _Loader(directory, config, clean, now_ms).load(recovery_point, log_start_offset)


class _Loader:
    """One run of loading; the steps follow each other in ``load``."""

    def __init__(self, directory: Path, config: LogConfig, clean: bool, now_ms: int) -> None:
        self.directory = directory
        self.config = config
        self.clean = clean
        self.now_ms = now_ms
        self.epochs = LeaderEpochs()
        self.epochs_known = False
        self.producers = ProducerState()
        self.producers_ready = False
        self.snapshots = Snapshots(directory)
        self.removed: list[Path] = []

    def load(self, recovery_point: int, log_start_offset: int) -> LoadedLog:
        self._settle_files()
        self._read_epochs()
        segments = self._open_segments(recovery_point, log_start_offset)
        for segment in segments:
            segment.load_max_timestamp()
        end = recovery.decide_end(
            end_offset=segments[-1].next_offset() if segments else None,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            clean=self.clean,
        )
        if end.action is EndAction.START_EMPTY:
            if segments:
                _log.warning(
                    "%s ends below its start offset %d: dropping all of it (row %s)",
                    self.directory.name, log_start_offset, end.row,
                )  # fmt: skip
            self._drop(segments)
            self.epochs.clear()
            segments = [Segment.create(self.directory, log_start_offset, self.config, self.now_ms)]
        else:
            segments[-1].make_active()
        start = max(log_start_offset, segments[0].base_offset)
        self._finish_epochs(segments, start, end.log_end_offset)
        self._finish_producers(segments, start, end.log_end_offset)
        return LoadedLog(
            segments, self.epochs, self.producers, self.snapshots,
            start, end.log_end_offset, max(end.recovery_point, start), self.removed,
        )  # fmt: skip

    # --- files -------------------------------------------------------------------------------

    def _settle_files(self) -> None:
        names = [path.name for path in self.directory.iterdir() if path.is_file()]
        swaps = []
        for decision in recovery.decide_files(names):
            path = self.directory / decision.name
            if decision.action is FileAction.DELETE:
                _log.info("%s: removing %s (row %s)", self.directory.name, path.name, decision.row)
                path.unlink(missing_ok=True)
            elif decision.action is FileAction.COMPLETE:
                swaps.append(path)
        if swaps:
            self._complete_swaps(swaps)

    def _complete_swaps(self, swaps: list[Path]) -> None:
        spans = [self._span(path) for path in swaps if path.name.endswith(LOG + SWAP)]
        bases = recovery.superseded(self._bases(), spans)
        replaced = set(bases)
        for path in list(self.directory.iterdir()):
            if offset_of(path.name) in replaced and not path.name.endswith(SWAP):
                path.unlink()
        for path in swaps:
            path.rename(path.with_name(path.name.removesuffix(SWAP)))

    def _span(self, path: Path) -> tuple[int, int]:
        base = offset_of(path.name) or 0
        end = base
        for batch in batches.walk(DataFile.open(path, writable=False)):
            end = batch.last_offset + 1
        return base, end

    def _bases(self) -> list[int]:
        offsets = (offset_of(path.name) for path in self.directory.glob(f"*{LOG}"))
        return sorted(offset for offset in offsets if offset is not None)

    def _drop(self, segments: list[Segment]) -> None:
        for segment in segments:
            self.removed.extend(segment.rename(DELETED))
            self.removed.extend(self.snapshots.mark_deleted(segment.base_offset))

    # --- segments ----------------------------------------------------------------------------

    def _open_segments(self, recovery_point: int, log_start_offset: int) -> list[Segment]:
        bases = self._bases()
        opened: list[Segment] = []
        for number, base in enumerate(bases):
            segment = Segment.open(self.directory, base, self.config, self.now_ms)
            facts = self._facts(
                segment,
                next_base_offset=bases[number + 1] if number + 1 < len(bases) else None,
                recovery_point=recovery_point,
            )
            decision = recovery.decide_segment(facts)
            opened.append(segment)
            if decision.action is SegmentAction.TRUST:
                continue
            _log.info(
                "%s: scanning segment %d because %s (row %s)",
                self.directory.name, base, decision.reason, decision.row,
            )  # fmt: skip
            self._prepare_producers(opened[:-1], log_start_offset, base)
            after = recovery.decide_after_scan(self._recover(segment))
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

    def _facts(
        self, segment: Segment, *, next_base_offset: int | None, recovery_point: int
    ) -> SegmentFacts:
        missing = tuple(
            suffix
            for suffix in (OFFSET_INDEX, TIME_INDEX)
            if not segment_file(self.directory, segment.base_offset, suffix).exists()
        )
        corruption = None
        try:
            segment.aborted.load()
            if not missing and (self.clean or next_base_offset is not None):
                segment.check_indexes()
        except CorruptIndexError as error:
            corruption = str(error)
        return SegmentFacts(
            base_offset=segment.base_offset,
            next_base_offset=next_base_offset,
            clean=self.clean,
            recovery_point=recovery_point,
            missing_indexes=missing,
            corruption=corruption,
        )

    def _recover(self, segment: Segment) -> ScanResult:
        """Scan a segment: rebuild its indexes, epochs and producers, cut what is not a log."""
        rebuilt = segment.rebuild()
        result = ScanResult.WHOLE
        end = 0
        try:
            for batch, data in batches.scan(segment.file):
                if not segment.fits(batch.last_offset):
                    result = ScanResult.OUT_OF_RANGE
                    break
                rebuilt.add(batch)
                self._replay(segment, batch, data)
                end = batch.next_position
        except (CorruptSegmentError, ValueError) as error:
            _log.warning("%s: segment %d %s", self.directory.name, segment.base_offset, error)
            result = ScanResult.TORN
        if result is ScanResult.WHOLE and end < segment.size:
            result = ScanResult.TORN
        if result is ScanResult.TORN:
            _log.warning(
                "%s: cutting %d bytes off segment %d at position %d",
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
        path = self.directory / LEADER_EPOCH_CHECKPOINT
        try:
            self.epochs = LeaderEpochs(checkpoints.parse_epochs(path.read_bytes()))
            self.epochs_known = True
        except FileNotFoundError:
            pass
        except checkpoints.MalformedCheckpointError as error:
            _log.warning("%s: %s, rebuilding it from the log", path, error)

    def _finish_epochs(self, segments: list[Segment], start: int, end: int) -> None:
        before = self.epochs.entries if self.epochs_known else None
        if not self.epochs_known:
            self.epochs = LeaderEpochs()
            for segment in segments:
                for batch in batches.walk(segment.file):
                    if batch.leader_epoch > self.epochs.latest:
                        self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self.epochs.truncate_from_end(end)
        self.epochs.truncate_from_start(start)
        if self.epochs.entries != before:
            data = checkpoints.format_epochs(self.epochs.entries)
            replace_file(self.directory / LEADER_EPOCH_CHECKPOINT, data)

    # --- producers ---------------------------------------------------------------------------

    def _prepare_producers(self, before: list[Segment], log_start_offset: int, offset: int) -> None:
        """Bring the producer state up to ``offset``, where a scan begins."""
        if not self.producers_ready:
            self.producers = self._rebuilt_producers(before, log_start_offset, offset)
            self.producers_ready = True

    def _rebuilt_producers(self, segments: list[Segment], start: int, end: int) -> ProducerState:
        expiration_ms = self.config.producer_id_expiration_ms
        return rebuild_producers(
            segments, self.snapshots, start=start, end=end, expire=(self.now_ms, expiration_ms)
        )

    def _finish_producers(self, segments: list[Segment], start: int, end: int) -> None:
        self.snapshots.remove_outside(start, end)
        if not self.producers_ready and self.clean and self.snapshots.latest is None:
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
    segments: list[Segment],
    snapshots: Snapshots,
    *,
    start: int,
    end: int,
    expire: tuple[int, int],
) -> ProducerState:
    """The producer state at ``end``: the newest snapshot at or below it, and the log after that.

    ``expire`` is (now, producer.id.expiration.ms), for producers silent since the snapshot.
    """
    state = ProducerState()
    found = snapshots.newest_at_most(end)
    if found is None:
        state.restore([], start)
    else:
        snapshot_offset, entries = found
        state.restore(entries, snapshot_offset)
        state.expire(*expire)
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
    """Take note of a batch that is in the log; return entries for the transaction index."""
    if batch.producer_id < 0:
        state.end_offset = batch.last_offset + 1
        return []
    try:
        plan = state.check([stored_producer_batch(batch, data)], Origin.REPLICATION)
    except KafkaError as error:
        # The leader accepted it once; the log is the truth, not this state.
        _log.warning("at offset %d: %s", batch.base_offset, error)
        return []
    return state.commit(plan, batch.last_offset + 1)
