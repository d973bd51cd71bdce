"""One segment: a run of batches in a ``.log`` file with its indexes.

A segment is named after its base offset, a lower bound of every offset in it. Batches are
appended whole and found again through the sparse offset index and a short walk over headers. The
youngest batches are also remembered exactly (last offset and position), so that readers at the
tail, which is where consumers and followers live, cost no read at all.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path

from barnabas_broker.invariants import violated
from barnabas_broker.log import batches
from barnabas_broker.log.batches import CorruptSegmentError, StoredBatch
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.files import DataFile, rename, sync_file
from barnabas_broker.log.indexes import (
    MAX_RELATIVE_OFFSET,
    UNKNOWN,
    CorruptIndexError,
    OffsetIndex,
    TimeIndex,
)
from barnabas_broker.log.names import (
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    TRANSACTION_INDEX,
    segment_file,
)
from barnabas_broker.log.segment_stats import SegmentStats
from barnabas_broker.log.transaction_index import TransactionIndex

#: Batches remembered exactly; half are dropped when the limit is reached. 16 bytes each.
TAIL_LIMIT = 256

#: Positions are 32-bit in the index, so no segment file may grow past this.
MAX_SEGMENT_SIZE = (1 << 31) - 1


#: (size, last offset, max timestamp) of one batch in an appended buffer: a bare tuple, for one
#: is made for every batch that is produced.
Appended = tuple[int, int, int]


class Segment:
    """A segment of a partition's log; all offsets absolute, positions in bytes of the file."""

    __slots__ = (
        "_bytes_since_index",
        "_first_timestamp",
        "_index_interval",
        "_tail_offsets",
        "_tail_positions",
        "aborted",
        "base_offset",
        "created_ms",
        "directory",
        "file",
        "jitter_ms",
        "max_timestamp",
        "offset_of_max_timestamp",
        "offsets",
        "stats",
        "times",
    )

    def __init__(self, directory: Path, base_offset: int, config: LogConfig, now_ms: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.created_ms = now_ms
        self.jitter_ms = config.roll_jitter_ms(directory.name, base_offset)
        self.max_timestamp = -1
        self.offset_of_max_timestamp = base_offset
        self._index_interval = config.index_interval_bytes
        self._bytes_since_index = 0
        self._first_timestamp: int | None = None
        self._tail_offsets = array("q")
        self._tail_positions = array("q")
        limit = config.segment_index_bytes
        self.offsets = OffsetIndex(
            segment_file(directory, base_offset, OFFSET_INDEX), base_offset, max_bytes=limit
        )
        self.times = TimeIndex(
            segment_file(directory, base_offset, TIME_INDEX), base_offset, max_bytes=limit
        )
        self.aborted = TransactionIndex(
            segment_file(directory, base_offset, TRANSACTION_INDEX), base_offset
        )
        #: what is in it, in numbers; None until it has been counted
        self.stats: SegmentStats | None = None
        self.file: DataFile

    @classmethod
    def create(cls, directory: Path, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """A new, empty segment with preallocated index files."""
        segment = cls(directory, base_offset, config, now_ms)
        segment.file = DataFile.create(
            segment_file(directory, base_offset, LOG),
            preallocate=config.segment_bytes if config.preallocate else 0,
        )
        segment.offsets.create()
        segment.times.create()
        segment.stats = SegmentStats()
        return segment

    @classmethod
    def open(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        *,
        suffix: str = "",
    ) -> Segment:
        """A segment that is on disk. Its indexes are read when they are first asked.

        With a ``suffix`` its files are yet to get their names; `moved_to` follows.
        """
        segment = cls(directory, base_offset, config, now_ms)
        if suffix:
            for index in (segment.offsets, segment.times, segment.aborted):
                index.path = index.path.with_name(index.path.name + suffix)
        segment.file = DataFile.open(segment_file(directory, base_offset, LOG + suffix))
        return segment

    # --- sizes and times ---------------------------------------------------------------------

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def largest_timestamp(self) -> int:
        """The youngest record's timestamp; the file's modification time when none has one."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.file.modified_ms()

    def load_max_timestamp(self) -> None:
        """Take the greatest timestamp from the time index, which a clean close has completed."""
        self.max_timestamp, self.offset_of_max_timestamp = self.times.last_entry

    def waited_ms(self, now_ms: int, timestamp: int) -> int:
        """How long the segment has been open, by the records' clock where they have one."""
        began = self._first_timestamp
        if began is None:
            began = self.first_timestamp
        return timestamp - began if began >= 0 else now_ms - self.created_ms

    @property
    def first_timestamp(self) -> int:
        """That of the first batch, read off the file once; -1 without."""
        if self._first_timestamp is None and self.file.size:
            first = next(batches.walk(self.file), None)
            self._first_timestamp = first.max_timestamp if first else None
        return -1 if self._first_timestamp is None else self._first_timestamp

    def fits(self, last_offset: int) -> bool:
        """True when ``last_offset`` fits in 31 bits relative to the base offset."""
        return 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def has_room_in_indexes(self, batches: int) -> bool:
        """True when so many more batches can be indexed."""
        return min(self.offsets.room, self.times.room) >= batches

    # --- writing -----------------------------------------------------------------------------

    def append(self, data: bytes | bytearray | memoryview, appended: list[Appended]) -> int:
        """Write whole batches with one write; return the position.

        Unchanged, but for what was counted, whatever is raised (an OSError mostly): the log's end
        has not moved then, so that the next batch gets the same offsets.
        """
        position = self.file.append(data)
        try:
            since = self._bytes_since_index
            place = position
            tail_offsets, tail_positions = self._tail_offsets, self._tail_positions
            for size, last_offset, max_timestamp in appended:
                if max_timestamp > self.max_timestamp:
                    self.max_timestamp = max_timestamp
                    self.offset_of_max_timestamp = last_offset
                if since > self._index_interval:
                    first = tail_offsets[-1] + 1 if tail_offsets else UNKNOWN
                    self.offsets.append(last_offset, place, first=first)
                    self.times.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
                    since = 0
                tail_offsets.append(last_offset)
                tail_positions.append(place)
                place += size
                since += size
            self._bytes_since_index = since
            assert place == position + len(data), violated("an append consists of whole batches")
            assert place == self.file.size, violated("an append goes to the end of the file")
            if self._first_timestamp is None:
                self._first_timestamp = appended[0][2]
            if len(tail_offsets) > TAIL_LIMIT:
                del tail_offsets[: -TAIL_LIMIT // 2], tail_positions[: -TAIL_LIMIT // 2]
            assert len(tail_offsets) == len(tail_positions), violated(
                "every batch has its position"
            )
        except BaseException:
            self._take_back(position, data)
            raise
        return position

    def _take_back(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Cut what was written last, at that position, and is in the indexes in part or not."""
        self.truncate_to(int.from_bytes(data[:8], "big"), self.created_ms)
        self.make_active()
        assert self.file.size == position, violated("what was not appended is not in the file")

    def seal(self) -> bool:
        """Finish a segment that takes no more appends: last time entry, files trimmed.

        True where its indexes lacked entries, or its log was longer than its batches. An index
        that is longer than its entries is read as well as a trimmed one.
        """
        self._note_max_timestamp()
        changed = self.write_indexes()
        self.offsets.trim()
        self.times.trim()
        return self.file.trim() or changed

    def _note_max_timestamp(self) -> None:
        if self.max_timestamp >= 0:
            self.times.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)

    def write_indexes(self) -> bool:
        """Bring the index files up to memory, before a flush moves the recovery point.

        True where one had entries to write.
        """
        written = [index.write() for index in (self.offsets, self.times, self.aborted)]
        return any(written)

    def sync_indexes(self) -> None:
        """Force the index files to the device. Blocks. Raises OSError."""
        for index in (self.offsets, self.times, self.aborted):
            sync_file(index.path)

    def make_active(self) -> None:
        """Let a segment found on disk take appends again: its indexes get room to grow."""
        self.offsets.preallocate()
        self.times.preallocate()

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Cut every batch that holds ``offset`` or more; return the offset the log ends at.

        That is ``offset``, or less where a batch lies across it: half a batch is not kept.
        """
        found = self.find(offset)
        self.stats = None
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self.aborted.truncate_to(offset)
        end = offset
        if found is not None:
            end = min(offset, found.base_offset)
            self.file = self.file.truncate(found.position)
        if not self.file.size:
            self.created_ms = now_ms
            self._first_timestamp = None
        self._bytes_since_index = 0
        del self._tail_offsets[:], self._tail_positions[:]
        if self.max_timestamp >= 0:
            self._reread_max_timestamp()
        return end

    def _reread_max_timestamp(self) -> None:
        self.load_max_timestamp()
        start = self.offsets.lookup(self.offset_of_max_timestamp)[1]
        for batch in batches.walk(self.file, start):
            self._see(batch)

    def _see(self, batch: StoredBatch) -> None:
        if batch.max_timestamp > self.max_timestamp:
            self.max_timestamp = batch.max_timestamp
            self.offset_of_max_timestamp = batch.last_offset

    # --- finding -----------------------------------------------------------------------------

    def find(self, offset: int) -> StoredBatch | None:
        """The first batch whose last offset is at or above ``offset``."""
        return batches.find(self.file, self.offsets.lookup(offset)[1], offset)

    def locate(self, offset: int) -> tuple[int, int] | None:
        """(position, first offset) of the first batch that reaches ``offset``.

        The first offset is the batch's base offset, or a lower bound of it where compaction left
        a gap before the batch.
        """
        if offset <= self.base_offset:
            return (0, self.base_offset) if self.file.size else None
        tail = self._tail_offsets
        if tail and offset > tail[0]:
            slot = bisect_left(tail, offset)
            if slot == len(tail):
                return None
            assert slot > 0, violated("a batch in the tail follows another")
            return self._tail_positions[slot], tail[slot - 1] + 1
        known = self.offsets.exact(offset)
        if known is not None:
            return known
        found = self.find(offset)
        if found is None:
            return None
        self.offsets.learn(found.position, found.base_offset, found.last_offset)
        return found.position, found.base_offset

    def position_of(self, offset: int) -> int:
        """Where the first batch that reaches ``offset`` starts; the end when none does."""
        located = self.locate(offset)
        return self.file.size if located is None else located[0]

    def batch_end(self, position: int) -> int:
        """Where the batch at ``position`` ends."""
        batch = next(batches.walk(self.file, position), None)
        return self.file.size if batch is None else batch.next_position

    def boundary_at_most(self, start: int, limit: int) -> int:
        """A batch boundary at or below ``limit``, above the one at ``start`` if there is any.

        The last such boundary, or in front of it the last that is indexed, if that leaves more
        than half of what was asked for: the few kilobytes between are not worth a read.
        """
        if limit >= self.file.size:
            return self.file.size
        positions = self._tail_positions
        if positions and limit >= positions[0]:
            return positions[bisect_right(positions, limit) - 1]
        boundary, seen = self.offsets.position_at_most(limit)
        if seen and 2 * (boundary - start) > limit - start:
            return boundary
        return batches.last_boundary(self.file, max(start, boundary), limit)

    def batches_from(self, offset: int) -> Iterator[StoredBatch]:
        """Batches from the first that reaches ``offset`` to the end of the segment."""
        return batches.walk(self.file, self.position_of(offset))

    def next_offset(self) -> int:
        """The offset after the last batch, read off the file; the base offset when empty.

        Raises CorruptSegmentError where the file does not end with that batch: the next append
        would follow what no reader gets past.
        """
        end = self.base_offset
        position = self.offsets.last_position
        for batch in batches.walk(self.file, position):
            end = batch.last_offset + 1
            position = batch.next_position
        if position != self.file.size:
            raise CorruptSegmentError(position, "the file ends with what is no whole batch")
        return end

    # --- repair ------------------------------------------------------------------------------

    def load_indexes(self) -> None:
        """Read the indexes whole, now. Raises CorruptIndexError."""
        len(self.offsets), len(self.times)

    def check_indexes(self) -> None:
        """Hold the indexes against the file; raises CorruptIndexError for what cannot be."""
        timed = self.times.check()
        if self.offsets.check(self.file.size) and not timed:
            raise CorruptIndexError(f"{self.times.path} is empty beside a full offset index")

    def rebuild(self) -> Rebuild:
        """Empty the indexes and begin to fill them again from the batches."""
        return Rebuild(self)

    @property
    def paths(self) -> list[Path]:
        """All files of the segment that there are."""
        paths = (segment_file(self.directory, self.base_offset, kind) for kind in SEGMENT_SUFFIXES)
        return [path for path in paths if path.exists()]

    def moved_to(self, directory: Path) -> None:
        """Follow a rename of the partition's directory."""
        self.directory = directory
        self.file.path = segment_file(directory, self.base_offset, LOG)
        self.offsets.path = segment_file(directory, self.base_offset, OFFSET_INDEX)
        self.times.path = segment_file(directory, self.base_offset, TIME_INDEX)
        self.aborted.path = segment_file(directory, self.base_offset, TRANSACTION_INDEX)


def rename_segment_files(directory: Path, base_offset: int, old: str, new: str) -> None:
    """Change the suffix behind the names of a segment's files, the log file first."""
    for kind in SEGMENT_SUFFIXES:
        path = segment_file(directory, base_offset, kind)
        source = path.with_name(path.name + old)
        if source.exists():
            rename(source, path.with_name(path.name + new))


class Rebuild:
    """The indexes of a segment built again, batch by batch, as appends would have built them."""

    __slots__ = ("_last_indexed", "_segment")

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._last_indexed = 0
        segment.offsets.reset()
        segment.times.reset()
        segment.aborted.reset()
        segment.max_timestamp = -1

    def add(self, batch: StoredBatch) -> None:
        segment = self._segment
        segment._see(batch)
        if batch.position - self._last_indexed > segment._index_interval:
            segment.offsets.append(batch.last_offset, batch.position)
            segment.times.maybe_append(segment.max_timestamp, segment.offset_of_max_timestamp)
            self._last_indexed = batch.position

    def finish(self, end: int) -> None:
        """Cut the log behind the last good batch and write the indexes."""
        if self._segment.file.size > end:
            self._segment.file = self._segment.file.truncate(end)
            # What was cut off must not come back behind what will be appended.
            self._segment.file.sync()
        self._segment.seal()
