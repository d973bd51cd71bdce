"""What to do with what a stop left behind: the decision tables of start-up.

Every way a broker can stop leaves a directory in one of the states below. Each row has a label, a
decision and the reason; the loader carries decisions out and never decides. Apache Kafka's
LogLoader and LogSegment.recover are the reference; rows say where we go further.

The clean-shutdown marker of a log directory
  M1  absent, and there are partitions    unclean: every row below that says so applies
  M2  present, and the log ends at its checkpointed recovery point   clean: that is where a clean
                                          stop leaves it
  M3  present, and the log ends elsewhere     unclean, recovery point 0: the marker is stale, of
      or where no batch can be read       a copy or of files changed behind our back
  M4  absent, and there is no partition   clean: the directory is new

Files found in a partition directory
  F1  ``*.deleted``                       delete: retention or truncation had given it up
  F2  ``*.cleaned``                       delete: compaction had not finished; originals are whole
  F3  ``*.swap`` at or above a ``.cleaned``   delete: half of a split that was not finished
  F4  ``*.swap``                          complete: compaction had finished, the renames had not
  F5  an index without its ``.log``       delete: a segment's deletion had begun
  F6  ``*.tmp``                           delete: an atomic replacement that never happened
  F7  anything else                       keep

Segments, in order of base offset
  S1  clean stop, indexes present         trust
  S2  ends at or below the recovery point, indexes present   trust: it was synced
  S3  an index is missing                 recover: rebuilt from the log (Apache leaves a missing
                                          time index empty)
  S4  an index contradicts itself         recover
  S5  reaches past the recovery point after an unclean stop  recover
  S6  its last offset is out of its reach   recover

After scanning a segment
  T1  every batch is whole and right      continue
  T2  a batch is torn or wrong, or        cut there, drop all later segments: what follows a hole
      reaches into the next segment       is not the log that was acknowledged
  T3  an offset below the segment's       empty the segment, drop all later segments
  T4  it was not synced and ends below the next one   drop all later segments: its end was lost at
                                          a batch's boundary (not where compaction makes gaps: in
                                          a compacted topic, and below what the cleaner has noted
                                          of one that was compacted once)
  T5  an offset that does not fit in 31   split it (brokers of old wrote such), look at everything
      bits above the segment's, below     again; in the last segment, which nothing bounds, such
      that of the next segment            an offset is wrong: T2

The ends
  E1  log end at or above log start       keep
  E2  log end below log start             drop everything, start empty at log start: files were
                                          removed behind our back
  E3  no segment                          start empty at log start
  R1  clean stop                          recovery point = log end
  R2  unclean stop                        recovery point = min(checkpoint, log end): it moves only
                                          when something is synced
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from barnabas_broker.invariants import violated
from barnabas_broker.log.names import (
    CLEANED,
    DELETED,
    INDEX_SUFFIXES,
    LOG,
    SWAP,
    TEMPORARY,
    offset_of,
)


class FileAction(Enum):
    """What happens to a file found at start."""

    KEEP = "keep"
    DELETE = "delete"
    COMPLETE = "complete"


class SegmentAction(Enum):
    """What happens to a segment found at start."""

    TRUST = "trust"
    RECOVER = "recover"


class FileDecision(NamedTuple):
    """The row that applies to one file name."""

    name: str
    row: str
    action: FileAction


class SegmentDecision(NamedTuple):
    """The row that applies to one segment, and why, for the log."""

    row: str
    action: SegmentAction
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFacts:
    """What the loader sees of a segment before it reads the log file.

    ``next_base_offset`` is None for the last segment, whose end nobody knows yet.
    """

    base_offset: int
    next_base_offset: int | None
    clean: bool
    recovery_point: int
    missing_indexes: tuple[str, ...] = ()
    overflows: bool = False
    corruption: str | None = None

    @property
    def may_be_short(self) -> bool:
        """True when the end of the segment may have been lost though a later one was not."""
        end = self.next_base_offset
        return not self.clean and end is not None and end > self.recovery_point

    @property
    def will_be_trusted(self) -> bool:
        """True when no later start looks at more than the ends of the segment's indexes."""
        end = self.next_base_offset
        return end is not None and (self.clean or end <= self.recovery_point)


class ScanResult(Enum):
    """How the scan of a segment ended."""

    WHOLE = "whole"
    TORN = "torn"
    OUT_OF_RANGE = "out of range"
    OVERFLOW = "too long for its offsets"
    SHORT = "short of the next segment"


@dataclass(frozen=True, slots=True)
class AfterScan:
    """What follows a scan: whether the segment is emptied or split, and later ones are dropped."""

    row: str
    empty_segment: bool
    drop_later: bool
    split: bool = False


class EndAction(Enum):
    """What happens once all segments are known."""

    KEEP = "keep"
    START_EMPTY = "start empty"


class EndDecision(NamedTuple):
    """Where the log ends and where its next recovery would begin."""

    row: str
    action: EndAction
    log_end_offset: int
    recovery_point: int


def is_stale(clean_end: int | None, end_offset: int | None) -> bool:
    """Row M3: a clean stop noted ``clean_end``, None where it noted nothing, and this is there."""
    return clean_end is not None and clean_end != (end_offset or 0)


def decide_files(names: Collection[str]) -> list[FileDecision]:
    """Rows F1 to F7 for the names in a partition directory."""
    cleaned = [offset_of(name) for name in names if name.endswith(CLEANED)]
    first_cleaned = min((offset for offset in cleaned if offset is not None), default=None)
    present = set(names)
    return [_decide_file(name, present, first_cleaned) for name in sorted(present)]


def _decide_file(name: str, present: set[str], first_cleaned: int | None) -> FileDecision:
    offset = offset_of(name)
    if name.endswith(DELETED):
        return FileDecision(name, "F1", FileAction.DELETE)
    if name.endswith(CLEANED):
        return FileDecision(name, "F2", FileAction.DELETE)
    if name.endswith(SWAP):
        if first_cleaned is not None and offset is not None and offset >= first_cleaned:
            return FileDecision(name, "F3", FileAction.DELETE)
        return FileDecision(name, "F4", FileAction.COMPLETE)
    if name.endswith(TEMPORARY):
        return FileDecision(name, "F6", FileAction.DELETE)
    if offset is not None and name.endswith(INDEX_SUFFIXES):
        log = name.partition(".")[0] + LOG
        if log not in present and log + SWAP not in present:
            return FileDecision(name, "F5", FileAction.DELETE)
    return FileDecision(name, "F7", FileAction.KEEP)


def decide_segment(facts: SegmentFacts) -> SegmentDecision:
    """Rows S1 to S6."""
    if facts.missing_indexes:
        missing = " and ".join(facts.missing_indexes)
        return SegmentDecision("S3", SegmentAction.RECOVER, f"it has no {missing}")
    if facts.corruption is not None:
        return SegmentDecision("S4", SegmentAction.RECOVER, facts.corruption)
    if facts.overflows:
        return SegmentDecision(
            "S6", SegmentAction.RECOVER, f"offset {facts.base_offset} is too far below its last"
        )
    if facts.clean:
        return SegmentDecision("S1", SegmentAction.TRUST, "the broker was stopped cleanly")
    assert not facts.clean, violated("after a clean stop segments with indexes are trusted")
    end = facts.next_base_offset
    if end is not None and end <= facts.recovery_point:
        return SegmentDecision("S2", SegmentAction.TRUST, "it ends below the recovery point")
    return SegmentDecision(
        "S5",
        SegmentAction.RECOVER,
        f"it reaches past the recovery point {facts.recovery_point} after an unclean stop",
    )


def decide_after_scan(result: ScanResult) -> AfterScan:
    """Rows T1 to T5."""
    if result is ScanResult.WHOLE:
        return AfterScan("T1", empty_segment=False, drop_later=False)
    if result is ScanResult.TORN:
        return AfterScan("T2", empty_segment=False, drop_later=True)
    if result is ScanResult.SHORT:
        return AfterScan("T4", empty_segment=False, drop_later=True)
    if result is ScanResult.OVERFLOW:
        return AfterScan("T5", empty_segment=False, drop_later=False, split=True)
    return AfterScan("T3", empty_segment=True, drop_later=True)


def decide_end(
    *, end_offset: int | None, log_start_offset: int, recovery_point: int, clean: bool
) -> EndDecision:
    """Rows E1 to E3 with R1 and R2; ``end_offset`` is None when no segment is left."""
    if end_offset is None or end_offset < log_start_offset:
        row = "E3" if end_offset is None else "E2"
        point = min(recovery_point, log_start_offset)
        return EndDecision(row, EndAction.START_EMPTY, log_start_offset, point)
    if clean:
        return EndDecision("E1 R1", EndAction.KEEP, end_offset, end_offset)
    assert end_offset >= log_start_offset, violated("a log that is kept ends at or above its start")
    return EndDecision("E1 R2", EndAction.KEEP, end_offset, min(recovery_point, end_offset))


def superseded(base_offsets: Sequence[int], swapped: Sequence[tuple[int, int]]) -> list[int]:
    """Segments that completed swaps replace: those from the first swap's base to the last's end.

    ``swapped`` has (base offset, next offset) of every ``.log.swap``.
    """
    if not swapped:
        return []
    start = min(base for base, _ in swapped)
    end = max(end for _, end in swapped)
    return [base for base in base_offsets if start <= base < end]
