"""Which segments retention gives up, and why.

Decides from sizes, ages and offsets alone. Rules of Apache Kafka's UnifiedLog: only a run of
segments from the oldest on goes; none goes that reaches above the high watermark; the empty
active segment stays. Three rules are asked in turn, each over what the one before has left:

* start offset: everything of the segment lies below the log start offset,
* size: without the segment the log still has at least ``retention.bytes``,
* time: the segment's youngest record is older than ``retention.ms``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from barnabas_broker.invariants import violated


class Reason(Enum):
    """Why a segment goes; the words of the log line."""

    START_OFFSET = "below the log start offset"
    SIZE = "over retention.bytes"
    TIME = "older than retention.ms"


class SegmentAge(NamedTuple):
    """A segment as retention sees it; ``youngest`` is its greatest timestamp in ms."""

    base_offset: int
    size: int
    youngest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds the log; -1 for ``retention_ms`` and ``retention_bytes`` is no limit."""

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    retention_ms: int = -1
    retention_bytes: int = -1


def pick(segments: Sequence[SegmentAge], limits: Limits, now_ms: int) -> list[tuple[int, Reason]]:
    """(base offset, reason) of the segments to give up, a prefix of ``segments``."""
    picked: list[tuple[int, Reason]] = []
    ends = [segment.base_offset for segment in segments[1:]] + [limits.log_end_offset]
    surplus = sum(segment.size for segment in segments) - limits.retention_bytes
    for reason in Reason:
        for segment, end in list(zip(segments, ends, strict=True))[len(picked) :]:
            last = len(picked) + 1 == len(segments)
            if limits.high_watermark < end or (last and not segment.size):
                break
            next_base = None if last else end
            if not _goes(
                reason, segment, end=next_base, limits=limits, now_ms=now_ms, surplus=surplus
            ):
                break
            surplus -= segment.size
            picked.append((segment.base_offset, reason))
            assert end <= limits.high_watermark, violated(
                "retention removes nothing above the high watermark"
            )
    assert len(picked) <= len(segments), violated("only segments of the log are removed")
    assert [base for base, _ in picked] == [each.base_offset for each in segments[: len(picked)]], (
        violated("a run of segments from the oldest on is removed")
    )
    return picked


def _goes(
    reason: Reason,
    segment: SegmentAge,
    *,
    end: int | None,
    limits: Limits,
    now_ms: int,
    surplus: int,
) -> bool:
    if reason is Reason.START_OFFSET:
        return end is not None and end <= limits.log_start_offset
    if reason is Reason.SIZE:
        return limits.retention_bytes >= 0 and surplus - segment.size >= 0
    return limits.retention_ms >= 0 and now_ms - segment.youngest > limits.retention_ms
