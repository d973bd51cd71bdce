"""From an offset to the bytes that answer a fetch: whole batches of one segment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from barnabas_broker.log.files import FileSlice
from barnabas_broker.log.segment import Segment


def slice_from(
    segments: Sequence[Segment],
    bases: Sequence[int],
    offset: int,
    *,
    max_bytes: int,
    upper_bound: int | None,
    at_least_one: bool,
) -> FileSlice:
    """Whole batches from the one that reaches ``offset``, all below ``upper_bound``.

    ``bases`` are the segments' base offsets; ``upper_bound`` None bounds nothing. Offsets that
    compaction has removed are served by the next batch, in a later segment if need be. Raises
    OSError and CorruptSegmentError.
    """
    number = max(bisect_right(bases, offset) - 1, 0)
    while (located := segments[number].locate(offset)) is None:
        number += 1
        if number == len(segments):
            return empty_slice(segments, offset)
    position, first_offset = located
    segment = segments[number]
    end = segment.file.size
    if upper_bound is not None and (number + 1 == len(bases) or upper_bound < bases[number + 1]):
        end = segment.position_of(upper_bound)
        if end <= position:
            return empty_slice(segments, offset)
    if position + max_bytes < end:
        end = segment.boundary_at_most(position, position + max_bytes)
        if end <= position:
            end = segment.batch_end(position) if at_least_one else position
    return FileSlice(segment.file, position, end - position, first_offset)


def empty_slice(segments: Sequence[Segment], offset: int) -> FileSlice:
    """A slice of no bytes: there is nothing to read yet."""
    return FileSlice(segments[-1].file, 0, 0, offset)
