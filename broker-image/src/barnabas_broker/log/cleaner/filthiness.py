"""Which log is cleaned next, and between which offsets.

Decides from sizes, offsets and times alone; the rules are those of Apache Kafka's
LogCleanerManager. A compacted log has three parts::

    log start ... first dirty ... first uncleanable ... log end
    |    clean   |   cleanable   |     left alone     |

*Clean* is what an earlier cleaning has processed: no key occurs there twice. *Left alone* are the
active segment, the one that holds the last stable offset (which is at most the high watermark),
the first with a record younger than ``min.compaction.lag.ms``, and all above any of these. A log is
worth cleaning when the cleanable part is more than ``min.cleanable.dirty.ratio`` of both, or when
it has waited longer than ``max.compaction.lag.ms``; the filthiest goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class SegmentFacts(NamedTuple):
    """A segment as the choice sees it.

    ``youngest`` is its greatest timestamp in ms; ``first_timestamp`` that of its first batch, -1
    where it has none or it is not needed.
    """

    base_offset: int
    size: int
    youngest: int
    first_timestamp: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """A compacted log; ``cleaned_to`` is None before its first cleaning.

    The last of ``segments`` is the active one. ``max_lag_ms`` bounds how long a record may stay
    dirty.
    """

    segments: Sequence[SegmentFacts]
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    cleaned_to: int | None
    min_ratio: float
    min_lag_ms: int
    max_lag_ms: int


class Bounds(NamedTuple):
    """What would be cleaned; ``reset`` when ``cleaned_to`` is of no use and has to be forgotten."""

    first_dirty: int
    first_uncleanable: int
    reset: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Filth:
    """How much of a log is dirty; ``delay_ms`` is by how much it is overdue."""

    bounds: Bounds
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int
    due: bool

    @property
    def ratio(self) -> float:
        """The cleanable part of all that a cleaning would read."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0


def bounds(log: LogFacts, now_ms: int) -> Bounds:
    """The offsets a cleaning may touch now; it ends where a segment does."""
    start = log.log_start_offset
    first_dirty, reset = start, False
    if log.cleaned_to is not None:
        # Below the start: retention came first. Above the end: the log was cut or replaced.
        reset = not start <= log.cleaned_to <= log.log_end_offset
        first_dirty = start if reset else log.cleaned_to
    limit = min(log.last_stable_offset, log.segments[-1].base_offset)
    if log.min_lag_ms > 0:
        for segment in _closed_from(log, first_dirty):
            if segment.youngest > now_ms - log.min_lag_ms:
                limit = min(limit, segment.base_offset)
                break
    # A cleaning reads whole segments. In that which holds the limit an undecided record may have
    # the key of a committed one below, which must stay should its transaction be aborted.
    limit = _from(log.segments, limit)[0].base_offset
    return Bounds(first_dirty, max(first_dirty, limit), reset)


def filth(log: LogFacts, now_ms: int) -> Filth:
    """How dirty a log is, and whether it is due for cleaning."""
    found = bounds(log, now_ms)
    clean = sum(one.size for one in log.segments if one.base_offset < found.first_dirty)
    above = _closed_from(log, found.first_uncleanable)
    end = above[0].base_offset if above else log.segments[-1].base_offset
    cleanable = sum(
        one.size
        for one in _from(log.segments, min(found.first_dirty, end))
        if one.base_offset < end
    )
    delay_ms = _overdue_ms(log, found.first_dirty, now_ms)
    total = clean + cleanable
    due = total > 0 and ((delay_ms > 0 and cleanable > 0) or cleanable / total > log.min_ratio)
    return Filth(
        bounds=found, clean_bytes=clean, cleanable_bytes=cleanable, delay_ms=delay_ms, due=due
    )


def _closed_from(log: LogFacts, offset: int) -> Sequence[SegmentFacts]:
    """The segments below the active one from that which holds ``offset`` on."""
    if offset >= log.segments[-1].base_offset:
        return []
    return _from(log.segments, offset)[:-1]


def _from(segments: Sequence[SegmentFacts], offset: int) -> Sequence[SegmentFacts]:
    """The segments from the one that holds ``offset`` on; all when it lies below them."""
    return segments[sum(segment.base_offset <= offset for segment in segments[1:]) :]


def _overdue_ms(log: LogFacts, first_dirty: int, now_ms: int) -> int:
    known = [
        one.first_timestamp for one in _closed_from(log, first_dirty) if one.first_timestamp > 0
    ]
    if not known:
        return 0
    return max(now_ms - max(log.max_lag_ms, 0) - min(known), 0)
