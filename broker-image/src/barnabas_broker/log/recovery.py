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
                                          of one that was compacted once; nor where it could
                                          not reach that far)
  T5  an offset that does not fit in 31   split it (old brokers wrote such), recover all
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
from typing import Final, NamedTuple, TypeVar

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

    ``next_base_offset`` is None for the last segment, whose end is not known yet.
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
        """True when no later start reads more than the ends of the segment's indexes."""
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


class Point(Enum):
    """Where the next recovery would begin."""

    END = "at the end of the log"
    CHECKPOINT = "at the checkpoint, or at the end where that is lower"


Facts = tuple[bool | None, ...]
"""The facts, in the order that a table names; in a row None matches any."""

Decision = TypeVar("Decision")
Rows = tuple[tuple[str, Facts, Decision], ...]
"""Label, facts and decision. Of any combination of facts that there can be, one row is true."""

FILES: Final[Rows[FileAction]] = (
    # deleted, cleaned, swap, at or above a .cleaned, tmp, index, its log is there
    ("F1", (True, None, None, None, None, None, None), FileAction.DELETE),
    ("F2", (False, True, None, None, None, None, None), FileAction.DELETE),
    ("F3", (False, False, True, True, None, None, None), FileAction.DELETE),
    ("F4", (False, False, True, False, None, None, None), FileAction.COMPLETE),
    ("F6", (False, False, False, None, True, None, None), FileAction.DELETE),
    ("F5", (False, False, False, None, False, True, False), FileAction.DELETE),
    ("F7", (False, False, False, None, False, True, True), FileAction.KEEP),
    ("F7", (False, False, False, None, False, False, None), FileAction.KEEP),
)

SEGMENTS: Final[Rows[SegmentAction]] = (
    # an index is missing, one contradicts itself, out of reach, clean stop, synced to its end
    ("S3", (True, None, None, None, None), SegmentAction.RECOVER),
    ("S4", (False, True, None, None, None), SegmentAction.RECOVER),
    ("S6", (False, False, True, None, None), SegmentAction.RECOVER),
    ("S1", (False, False, False, True, None), SegmentAction.TRUST),
    ("S2", (False, False, False, False, True), SegmentAction.TRUST),
    ("S5", (False, False, False, False, False), SegmentAction.RECOVER),
)

SCANS: Final[dict[ScanResult, AfterScan]] = {
    ScanResult.WHOLE: AfterScan("T1", empty_segment=False, drop_later=False),
    ScanResult.TORN: AfterScan("T2", empty_segment=False, drop_later=True),
    ScanResult.OUT_OF_RANGE: AfterScan("T3", empty_segment=True, drop_later=True),
    ScanResult.SHORT: AfterScan("T4", empty_segment=False, drop_later=True),
    ScanResult.OVERFLOW: AfterScan("T5", empty_segment=False, drop_later=False, split=True),
}

ENDS: Final[Rows[tuple[EndAction, Point]]] = (
    # a segment is left, the log ends at or above its start, clean stop
    ("E3", (False, None, None), (EndAction.START_EMPTY, Point.CHECKPOINT)),
    ("E2", (True, False, None), (EndAction.START_EMPTY, Point.CHECKPOINT)),
    ("E1 R1", (True, True, True), (EndAction.KEEP, Point.END)),
    ("E1 R2", (True, True, False), (EndAction.KEEP, Point.CHECKPOINT)),
)


def matching(rows: Rows[Decision], facts: tuple[bool, ...]) -> tuple[str, Decision]:
    """The one row that is true of these facts: its label and its decision."""
    for label, wanted, decision in rows:
        if all(each is None or each == seen for each, seen in zip(wanted, facts, strict=True)):
            return label, decision
    raise AssertionError(violated("every combination of facts has its row"))


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
    log = name.partition(".")[0] + LOG
    facts = (
        name.endswith(DELETED),
        name.endswith(CLEANED),
        name.endswith(SWAP),
        first_cleaned is not None and offset is not None and offset >= first_cleaned,
        name.endswith(TEMPORARY),
        offset is not None and name.endswith(INDEX_SUFFIXES),
        log in present or log + SWAP in present,
    )
    row, action = matching(FILES, facts)
    return FileDecision(name, row, action)


def decide_segment(facts: SegmentFacts) -> SegmentDecision:
    """Rows S1 to S6."""
    end = facts.next_base_offset
    seen = (
        bool(facts.missing_indexes),
        facts.corruption is not None,
        facts.overflows,
        facts.clean,
        end is not None and end <= facts.recovery_point,
    )
    row, action = matching(SEGMENTS, seen)
    return SegmentDecision(row, action, _reason(row, facts))


def _reason(row: str, facts: SegmentFacts) -> str:
    """Why a segment is trusted or recovered, for the log."""
    return {
        "S1": "the broker was stopped cleanly",
        "S2": "it ends below the recovery point",
        "S3": f"it has no {' and '.join(facts.missing_indexes)}",
        "S4": str(facts.corruption),
        "S5": f"it reaches past the recovery point {facts.recovery_point} after an unclean stop",
        "S6": f"offset {facts.base_offset} is too far below its last",
    }[row]


def decide_after_scan(result: ScanResult) -> AfterScan:
    """Rows T1 to T5."""
    return SCANS[result]


def decide_end(
    *, end_offset: int | None, log_start_offset: int, recovery_point: int, clean: bool
) -> EndDecision:
    """Rows E1 to E3 with R1 and R2; ``end_offset`` is None when no segment is left."""
    start = log_start_offset
    end = start if end_offset is None else end_offset
    row, (action, point) = matching(ENDS, (end_offset is not None, end >= start, clean))
    if action is EndAction.START_EMPTY:
        end = start
    assert end >= start, violated("a log ends at or above its start")
    return EndDecision(row, action, end, end if point is Point.END else min(recovery_point, end))


def superseded(base_offsets: Sequence[int], swapped: Sequence[tuple[int, int]]) -> list[int]:
    """Segments that completed swaps replace: those from the first swap's base to the last's end.

    ``swapped`` has (base offset, next offset) of every ``.log.swap``.
    """
    if not swapped:
        return []
    start = min(base for base, _ in swapped)
    end = max(end for _, end in swapped)
    return [base for base in base_offsets if start <= base < end]
