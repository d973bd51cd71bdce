"""Which neighbouring segments become one, so that compaction does not leave a thousand small ones.

Apache Kafka's Cleaner.groupSegmentsBySize: a group's files together fit in one segment of
``segment.bytes`` and its indexes in ``segment.index.bytes`` before anything is dropped, and every
offset fits in 31 bits relative to the first segment's base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas_broker.log.indexes import MAX_RELATIVE_OFFSET


class Source(NamedTuple):
    """A segment to be cleaned: sizes of its files in bytes."""

    base_offset: int
    size: int
    offset_index: int
    time_index: int


def groups(
    segments: Sequence[Source], *, segment_bytes: int, index_bytes: int, upper_bound: int
) -> list[list[Source]]:
    """``segments``, all below the offset ``upper_bound``, in runs that become one segment each."""
    found: list[list[Source]] = []
    ends = [segment.base_offset - 1 for segment in segments[1:]] + [upper_bound - 1]
    for segment, last_offset in zip(segments, ends, strict=bool(segments)):
        if (
            found
            and _fits(found[-1], segment, segment_bytes, index_bytes)
            and (not segment.size or last_offset - found[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        ):
            found[-1].append(segment)
        else:
            found.append([segment])
    return found


def _fits(group: list[Source], segment: Source, segment_bytes: int, index_bytes: int) -> bool:
    together = [*group, segment]
    return (
        sum(one.size for one in together) <= segment_bytes
        and sum(one.offset_index for one in together) <= index_bytes
        and sum(one.time_index for one in together) <= index_bytes
    )
