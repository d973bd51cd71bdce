"""The segments of one log, in the order of their base offsets; Kafka's ``LogSegments``.

Only a new segment is added in place. What removes or replaces segments builds a new collection, so
that a thread which walks one sees a whole log, and a failed step can return to the old one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self, overload

from barnabas_broker.invariants import violated
from barnabas_broker.log import segment_stats
from barnabas_broker.log.files import FileSlice
from barnabas_broker.log.segment import Segment
from barnabas_broker.log.transaction_index import AbortedTransaction


class LogSegments(Sequence[Segment]):
    """Segments by base offset; those of a closed log are none, and have no ``active`` one."""

    __slots__ = ("_base_offsets", "_segments", "active")

    #: The last segment, which alone takes appends. A field: every append reads it.
    active: Segment

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = list(segments)
        self._base_offsets = [segment.base_offset for segment in self._segments]
        assert self._base_offsets == sorted(set(self._base_offsets)), violated(
            "segments are in the order of their base offsets, which are unique"
        )
        if self._segments:
            self.active = self._segments[-1]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @overload
    def __getitem__(self, index: int) -> Segment: ...
    @overload
    def __getitem__(self, index: slice) -> list[Segment]: ...
    def __getitem__(self, index: int | slice) -> Segment | list[Segment]:
        return self._segments[index]

    @property
    def base_offsets(self) -> Sequence[int]:
        return self._base_offsets

    @property
    def size(self) -> int:
        """Bytes in all ``.log`` files."""
        return sum(segment.file.size for segment in self._segments)

    def floor(self, offset: int) -> int:
        """The index of the last segment that begins at or below ``offset``, else the first."""
        return max(bisect_right(self._base_offsets, offset) - 1, 0)

    def from_floor(self, offset: int) -> list[Segment]:
        """The segments that can hold ``offset`` or a later one."""
        return self._segments[self.floor(offset) :]

    # --- changes -----------------------------------------------------------------------------

    def add(self, segment: Segment) -> None:
        """Add a segment behind all others; it is the active one from now on."""
        assert segment.base_offset > self._base_offsets[-1], violated(
            "a new segment begins above all others"
        )
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment

    def index_of_run(self, base_offsets: Sequence[int]) -> int:
        """Where the neighbours ``base_offsets`` begin, all below the active segment.

        Raises ValueError when the log does not have these segments (any more).
        """
        first = bisect_left(self._base_offsets, base_offsets[0])
        end = first + len(base_offsets)
        if self._base_offsets[first:end] != list(base_offsets) or end >= len(self):
            raise ValueError(f"no segments {list(base_offsets)} below the active one")
        return first

    def replaced(self, start: int, end: int, segment: Segment) -> Self:
        """The segments with one in place of those from index ``start`` up to ``end``."""
        assert end < len(self), violated("the active segment is not replaced")
        return type(self)([*self._segments[:start], segment, *self._segments[end:]])

    def move_to(self, directory: Path) -> None:
        """Follow a rename of the directory, which the caller has done."""
        for segment in self._segments:
            segment.moved_to(directory)

    # --- reads -------------------------------------------------------------------------------

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int | None, at_least_one: bool
    ) -> FileSlice:
        """Whole batches of one segment from the one that reaches ``offset``, below ``upper_bound``.

        ``upper_bound`` None bounds nothing. Offsets that compaction has removed are served by the
        next batch, in a later segment if need be. Raises OSError and CorruptSegmentError.
        """
        segments = self._segments
        index = max(bisect_right(self._base_offsets, offset) - 1, 0)
        while (located := segments[index].locate(offset)) is None:
            index += 1
            if index == len(segments):
                return self.empty_slice(offset)
        position, first_offset = located
        segment = segments[index]
        end = segment.file.size
        if upper_bound is not None and (
            segment is self.active or upper_bound < self._base_offsets[index + 1]
        ):
            end = segment.position_of(upper_bound)
            if end <= position:
                return self.empty_slice(offset)
        if position + max_bytes < end:
            end = segment.boundary_at_most(position, position + max_bytes)
            if end <= position:
                end = segment.batch_end(position) if at_least_one else position
        return FileSlice(segment.file, position, end - position, first_offset)

    def empty_slice(self, offset: int) -> FileSlice:
        """A slice of no bytes: there is nothing to read yet."""
        return FileSlice(self.active.file, 0, 0, offset)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [start, end), for a read_committed fetch."""
        found: list[AbortedTransaction] = []
        for segment in self.from_floor(start):
            entries, complete = segment.aborted.collect(start, end)
            found.extend(entries)
            if complete:
                break
        return found

    # --- statistics --------------------------------------------------------------------------

    @property
    def uncounted(self) -> Sequence[Segment]:
        """Segments that take no more appends and have no statistics yet."""
        return [segment for segment in self._segments[:-1] if segment.stats is None]

    def load_stats(self, directory: Path, *, up_to: int, log_end_offset: int) -> None:
        """Read the statistics of segments that end at or below ``up_to``."""
        known = segment_stats.read(directory)
        ends = [*self._base_offsets[1:], log_end_offset]
        for segment, end in zip(self._segments, ends, strict=True):
            size, found = known.get(segment.base_offset, (-1, None))
            if segment.stats is None and end <= up_to and size == segment.size:
                segment.stats = found

    def write_stats(self, directory: Path) -> bool:
        """Write the statistics of all segments; False where the file has them."""
        known = {s.base_offset: (s.size, s.stats) for s in self._segments if s.stats is not None}
        changed = segment_stats.read(directory) != known
        if changed:
            segment_stats.write(directory, known)
        return changed
