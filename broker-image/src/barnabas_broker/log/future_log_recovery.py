"""Which copy of a partition is opened where a move was interrupted: the hands of `move_note`.

The copy that stays is on the device, with what was known of the other's beginning, before the
other is given up; and the notes go last of all. So a stop in here is like a stop before.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas_broker.log import move_record, names
from barnabas_broker.log.directory import DirectoryState, LogDirectoryError
from barnabas_broker.log.files import rename, sync_directory
from barnabas_broker.log.move_record import MoveRecord, Verdict
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Copy:
    """A partition as it was found in one log directory."""

    log: PartitionLog
    home: DirectoryState
    note: MoveRecord | None

    @property
    def end(self) -> tuple[int, int]:
        """By this two copies of one history compare."""
        return self.log.latest_epoch, self.log.log_end_offset


@dataclass(slots=True, kw_only=True)
class Settled:
    """The copy that is the log, None when none can be; what becomes of the other."""

    log: PartitionLog | None = None
    home: DirectoryState | None = None
    #: the other is offline, and might come back
    offline_copy: bool = False
    #: given up: to be removed
    removed: Path | None = None
    #: an unfinished copy, to go on from
    future: Path | None = None


def settle(
    tp: TopicPartition,
    copies: Sequence[Copy],
    *,
    offline: Collection[str],
    checkpoint: Callable[[Copy], None],
    now_ms: int,
) -> Settled:
    """Choose between copies, and make the choice last. Blocks.

    ``offline`` has the absolute paths of log directories that cannot be read; ``checkpoint`` writes
    the checkpoints of the directory of the copy that is chosen. Raises OSError and KafkaError, and
    LogDirectoryError for copies that no move explains.
    """
    if len(copies) == 1:
        return _settle_one(tp, copies[0], offline)
    if len(copies) == 2:
        for old, new in (copies, reversed(copies)):
            if move_record.names_both(new.note, old.home.path, new.home.path):
                return _settle_two(tp, old, new, checkpoint, now_ms)
    raise two_homes(tp, copies[0].home.path, copies[1].home.path)


def two_homes(tp: TopicPartition, one: Path, other: Path) -> LogDirectoryError:
    """Row V7."""
    return LogDirectoryError(f"{tp} lies in both {one} and {other}: remove one")


def _settle_one(tp: TopicPartition, copy: Copy, offline: Collection[str]) -> Settled:
    note, path = copy.note, copy.home.path
    other = "" if note is None else note.other(path)
    verdict = move_record.judge_one(note, path, other_offline=other in offline)
    if verdict is Verdict.NONE:
        _log.error(
            "Log not opened: partition=%s was moving between %s and %s, which is offline "
                "and may have records that %s lacks",
            tp, path, other, path,
        )  # fmt: skip
        copy.log.close(clean=False)
        return Settled()
    if verdict is Verdict.ONLY_KEEP_NOTE:
        return Settled(log=copy.log, home=copy.home, offline_copy=True)
    move_record.remove(copy.log.directory)
    return Settled(log=copy.log, home=copy.home)


def _settle_two(
    tp: TopicPartition, old: Copy, new: Copy, checkpoint: Callable[[Copy], None], now_ms: int
) -> Settled:
    switched = new.note is not None and new.note.switched
    verdict = move_record.judge_two(old.end, new.end, switched=switched)
    _log.info(
        "Resolved an interrupted move between log directories: partition=%s from=%s (log "
            "end %d) to=%s (log end %d); using the %s copy",
        tp, old.home.path, old.log.log_end_offset, new.home.path, new.log.log_end_offset,
        verdict.name.lower(),
    )  # fmt: skip
    if verdict is Verdict.OLD:
        new.log.close(clean=False)
        future = new.home.path / names.future_directory(tp, uuid.uuid4())
        rename(new.log.directory, future)
        sync_directory(new.home.path)
        move_record.remove(old.log.directory)
        return Settled(log=old.log, home=old.home, future=future)
    _inherit(new.log, old.log)
    new.log.flush(now_ms=now_ms)
    checkpoint(new)
    removed = old.home.path / names.delete_directory(tp, uuid.uuid4())
    old.log.close(clean=False)
    rename(old.log.directory, removed)
    sync_directory(old.home.path)
    move_record.remove(new.log.directory)
    return Settled(log=new.log, home=new.home, removed=removed)


def _inherit(new: PartitionLog, old: PartitionLog) -> None:
    """Take over what the checkpoints of the old directory said."""
    new.advance_high_watermark(max(new.high_watermark, old.high_watermark))
    if new.log_start_offset < old.log_start_offset <= new.log_end_offset:
        new.advance_high_watermark(max(new.high_watermark, old.log_start_offset))
        new.delete_records_before(old.log_start_offset)
    if new.cleaned_to is None:
        new.cleaned_to = old.cleaned_to
