"""Sparse indexes of one segment, kept in memory and written behind in Kafka's formats.

Layout of the files (big-endian, no header, no checksum; sorted by every column)::

    .index      relative offset int32 | position int32                     8 bytes an entry
    .timeindex  timestamp int64 | relative offset int32                   12 bytes an entry

An offset entry names the *last* offset of a batch and the position where that batch starts. A time
entry (t, o) says: no record up to offset o is younger than t. The file of the active segment is
preallocated (sparse, ``segment.index.bytes`` rounded down to whole entries) and trimmed when the
segment is rolled or closed, as Apache Kafka's OffsetIndex and TimeIndex leave them.

Apache maps these files into memory. Touching a fresh mapping costs milliseconds per new segment,
so here the entries live in arrays and the file trails behind: what a killed process had not
written yet is rebuilt from the log, which recovery does for every segment past the recovery point
anyway. Nothing below the recovery point is ever pending: a flush writes and syncs the indexes
first.
"""

from __future__ import annotations

import contextlib
import struct
import sys
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import ClassVar

from barnabas_broker.invariants import violated
from barnabas_broker.log.files import DataFile

MAX_RELATIVE_OFFSET = (1 << 31) - 1

#: Entries kept back before they are written; at 4 KiB an entry that is 2 MiB of log.
PENDING_LIMIT = 512

#: The first offset of an indexed batch that is not verified yet.
UNKNOWN = -1

_LOW_HALF = 0xFFFFFFFF
_TIME_ENTRY = struct.Struct(">qi")


class CorruptIndexError(Exception):
    """An index file that cannot belong to its segment; the segment has to be scanned again."""


class _IndexFile:
    """The file behind an index: preallocated, appended to in blocks, trimmed at the end."""

    __slots__ = ("_written", "entry_size", "max_bytes", "path", "preallocated")

    def __init__(self, path: Path, entry_size: int, max_bytes: int) -> None:
        self.path = path
        self.entry_size = entry_size
        self.max_bytes = max_bytes // entry_size * entry_size
        self.preallocated = False
        self._written = 0

    @property
    def written(self) -> int:
        """Entries that are in the file."""
        return self._written

    def create(self) -> None:
        DataFile.create(self.path, preallocate=self.max_bytes)
        self.preallocated = True
        self._written = 0

    def load(self) -> bytes:
        """The entries in the file, without the zeros of a preallocated rest.

        Raises CorruptIndexError for a size no sequence of entries has.
        """
        file = DataFile.open(self.path, writable=False)
        if file.size % self.entry_size:
            raise CorruptIndexError(
                f"{self.path} has {file.size} bytes, not a multiple of {self.entry_size}"
            )
        data = file.read(0, file.size).rstrip(b"\0")
        self._written = -(-len(data) // self.entry_size)
        return data.ljust(self._written * self.entry_size, b"\0")

    def ends(self) -> tuple[bytes, bytes] | None:
        """The first and the last entry, without reading what lies between; None when empty.

        Thousands of old segments are opened at a start, and few are ever searched.
        Raises CorruptIndexError as ``load`` does.
        """
        file = DataFile.open(self.path, writable=False)
        if file.size % self.entry_size:
            raise CorruptIndexError(
                f"{self.path} has {file.size} bytes, not a multiple of {self.entry_size}"
            )
        last = file.read(file.size - self.entry_size, self.entry_size) if file.size else b""
        if not any(last):
            # Empty, or preallocated: only all of it says where the entries end.
            last = self.load()[-self.entry_size :]
        return (file.read(0, self.entry_size), last) if last else None

    def grow(self) -> None:
        """Preallocate again, when a trimmed index becomes that of the active segment."""
        DataFile.open(self.path, create=True).set_physical_size(self.max_bytes)
        self.preallocated = True

    def write(self, data: bytes) -> None:
        DataFile.open(self.path, create=True).write_at(data, self._written * self.entry_size)
        self._written += len(data) // self.entry_size

    def cut(self, entries: int) -> None:
        """Forget entries past ``entries``; zeros take their place while preallocated."""
        file = DataFile.open(self.path, create=True)
        file.set_physical_size(min(entries, self._written) * self.entry_size)
        if self.preallocated:
            file.set_physical_size(self.max_bytes)
        self._written = min(entries, self._written)

    def trim(self) -> None:
        DataFile.open(self.path, create=True).set_physical_size(self._written * self.entry_size)
        self.preallocated = False


class _Index(ABC):
    """Entries in ascending order, in memory once they are needed (Kafka's `AbstractIndex`)."""

    __slots__ = ("_capacity", "_entries", "_file", "base_offset")

    ENTRY_SIZE: ClassVar[int]
    RESERVED: ClassVar[int] = 0
    """Slots that `is_full` and `room` do not count."""

    def __init__(self, path: Path, base_offset: int, *, max_bytes: int) -> None:
        self.base_offset = base_offset
        self._file = _IndexFile(path, self.ENTRY_SIZE, max_bytes)
        self._capacity = max_bytes // self.ENTRY_SIZE - self.RESERVED
        self._entries: array[int] | None = None

    @abstractmethod
    def _loaded(self) -> array[int]:
        """The entries; raises CorruptIndexError where the file cannot have been written so."""

    @abstractmethod
    def write(self) -> bool:
        """Bring the file up to the entries in memory; True where it lacked some."""

    def _write_behind(self) -> None:
        """Write what is pending, if that can be done: the batch is in the log, nothing may fail.

        Otherwise the next flush does it, and reports the error.
        """
        with contextlib.suppress(OSError):
            self.write()

    @property
    def path(self) -> Path:
        return self._file.path

    @path.setter
    def path(self, path: Path) -> None:
        self._file.path = path

    def __len__(self) -> int:
        return len(self._loaded())

    @property
    def is_full(self) -> bool:
        entries = self._entries
        return len(self._loaded() if entries is None else entries) >= self._capacity

    @property
    def room(self) -> int:
        """How many entries can still be added."""
        return self._capacity - len(self._loaded())

    def preallocate(self) -> None:
        self._loaded()
        if not self._file.preallocated:
            self._file.grow()

    def trim(self) -> None:
        """Write everything and cut the preallocated rest off."""
        if self._entries is not None:
            self.write()
            self._file.trim()


class OffsetIndex(_Index):
    """Last offset of a batch → position of the batch, for one batch every few kilobytes.

    Entries are ``relative offset << 32 | position``: one sorted array answers both questions.

    In memory an entry also has the lower bound of its batch's offsets, once that was seen: when
    it was appended, or when a reader found the batch by its header. What lies between the bound
    and the entry is then located without reading the log.
    """

    __slots__ = ("_firsts",)

    ENTRY_SIZE = 8

    def __init__(self, path: Path, base_offset: int, *, max_bytes: int) -> None:
        super().__init__(path, base_offset, max_bytes=max_bytes)
        self._firsts = array("i")  # Relative lower bounds beside the entries, -1 where unknown.

    def create(self) -> None:
        self._entries, self._firsts = array("Q"), array("i")
        self._file.create()

    def _loaded(self) -> array[int]:
        if self._entries is None:
            entries = array("Q", self._file.load())
            if sys.byteorder == "little":
                entries.byteswap()
            if entries and (entries[0] > entries[-1] or entries[-1] >> 63):
                raise CorruptIndexError(f"{self._file.path} is not in ascending order")
            self._entries = entries
            self._firsts = array("i", (UNKNOWN,)) * len(entries)
        return self._entries

    def check(self, log_size: int) -> bool:
        """Hold both ends of the file against a log of ``log_size`` bytes; True when not empty.

        Raises CorruptIndexError, after which the segment has to be scanned.
        """
        if self._entries is not None:
            if not self._entries:
                return False
            first, last = self._entries[0], self._entries[-1]
        else:
            ends = self._file.ends()
            if ends is None:
                return False
            first, last = (int.from_bytes(end, "big") for end in ends)
        if first > last or last >> 63:
            raise CorruptIndexError(f"{self._file.path} is not in ascending order")
        if last & _LOW_HALF >= log_size:
            raise CorruptIndexError(f"{self._file.path} points past the end of the log")
        return True

    @property
    def last_offset(self) -> int:
        """The last offset indexed; the segment's base offset when there is none."""
        entries = self._loaded()
        return self.base_offset + (entries[-1] >> 32) if entries else self.base_offset

    @property
    def last_position(self) -> int:
        entries = self._loaded()
        return entries[-1] & _LOW_HALF if entries else 0

    def entry(self, number: int) -> tuple[int, int]:
        """(offset, position) of the nth entry."""
        entry = self._loaded()[number]
        return self.base_offset + (entry >> 32), entry & _LOW_HALF

    def append(self, offset: int, position: int, *, first: int = UNKNOWN) -> None:
        """Index a batch; ``offset`` must lie above every offset indexed so far.

        ``first`` is the lower bound of its offsets: nothing between that and the batch before.
        """
        entries = self._loaded()
        entry = (offset - self.base_offset) << 32 | position
        if entries and entry >> 32 <= entries[-1] >> 32:
            raise ValueError(f"offset {offset} is not above the last one in {self._file.path}")
        entries.append(entry)
        self._firsts.append(UNKNOWN if first == UNKNOWN else first - self.base_offset)
        assert len(self._firsts) == len(entries), violated("every index entry has its lower bound")
        if len(entries) - self._file.written >= PENDING_LIMIT:
            self._write_behind()

    def lookup(self, offset: int) -> tuple[int, int]:
        """The greatest entry at or below ``offset``; (base offset, 0) when all lie above it."""
        entries = self._loaded()
        slot = bisect_right(entries, (offset - self.base_offset) << 32 | _LOW_HALF) - 1
        if slot < 0:
            return self.base_offset, 0
        return self.base_offset + (entries[slot] >> 32), entries[slot] & _LOW_HALF

    def exact(self, offset: int) -> tuple[int, int] | None:
        """(position, first offset) of the batch that holds ``offset``, where an entry knows it."""
        entries = self._loaded()
        relative = offset - self.base_offset
        slot = bisect_left(entries, relative << 32)
        if slot == len(entries) or not 0 <= self._firsts[slot] <= relative:
            return None
        return entries[slot] & _LOW_HALF, self.base_offset + self._firsts[slot]

    def learn(self, position: int, first: int, last: int) -> None:
        """A batch was seen at ``position``: remember its first offset if it has an entry."""
        entries = self._loaded()
        entry = (last - self.base_offset) << 32 | position
        slot = bisect_left(entries, entry)
        if slot < len(entries) and entries[slot] == entry:
            self._firsts[slot] = max(first - self.base_offset, 0)

    def position_at_most(self, position: int) -> tuple[int, bool]:
        """The greatest indexed batch position at or below ``position``; 0 when there is none.

        Also whether a batch was seen to start there, so that it need not be read to believe it.
        """
        entries = self._loaded()
        slot = bisect_right(entries, position, key=_position_of) - 1
        if slot < 0:
            return 0, True
        return entries[slot] & _LOW_HALF, self._firsts[slot] != UNKNOWN

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above ``offset``."""
        entries = self._loaded()
        keep = bisect_left(entries, max(offset - self.base_offset, 0) << 32)
        del entries[keep:], self._firsts[keep:]
        self._file.cut(keep)

    def reset(self) -> None:
        """Empty the index, whatever the file holds."""
        self._entries, self._firsts = array("Q"), array("i")
        self._file.cut(0)

    def write(self) -> bool:
        """Bring the file up to the entries in memory; True where it lacked some."""
        if self._entries is None or len(self._entries) == self._file.written:
            return False
        pending = self._entries[self._file.written :]
        if sys.byteorder == "little":
            pending.byteswap()
        self._file.write(pending.tobytes())
        return True


def _position_of(entry: int) -> int:
    return entry & _LOW_HALF


class TimeIndex(_Index):
    """Greatest timestamp so far → last offset of the batch that has it."""

    __slots__ = ("_offsets",)

    ENTRY_SIZE = 12
    RESERVED = 1  # For the entry written when the segment is rolled.

    def __init__(self, path: Path, base_offset: int, *, max_bytes: int) -> None:
        super().__init__(path, base_offset, max_bytes=max_bytes)
        self._offsets: array[int] = array("i")

    def create(self) -> None:
        self._entries = array("q")
        self._offsets = array("i")
        self._file.create()

    def _loaded(self) -> array[int]:
        if self._entries is None:
            timestamps, offsets = array("q"), array("i")
            for timestamp, offset in _TIME_ENTRY.iter_unpack(self._file.load()):
                timestamps.append(timestamp)
                offsets.append(offset)
            if timestamps and (timestamps[0] > timestamps[-1] or offsets[-1] < 0):
                raise CorruptIndexError(f"{self._file.path} is not in ascending order")
            self._entries, self._offsets = timestamps, offsets
        return self._entries

    def entry(self, number: int) -> tuple[int, int]:
        """(timestamp, offset) of the nth entry."""
        return self._loaded()[number], self.base_offset + self._offsets[number]

    def check(self) -> bool:
        """Hold both ends of the file against each other; True when not empty.

        Raises CorruptIndexError, after which the segment has to be scanned.
        """
        if self._entries is not None:
            return bool(self._entries)
        ends = self._file.ends()
        if ends is None:
            return False
        first, last = (_TIME_ENTRY.unpack(end) for end in ends)
        if first[0] > last[0] or last[1] < 0:
            raise CorruptIndexError(f"{self._file.path} is not in ascending order")
        return True

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when there is none."""
        if self._entries is None:
            ends = self._file.ends()
            if ends is None:
                return -1, self.base_offset
            timestamp, offset = _TIME_ENTRY.unpack(ends[1])
            return timestamp, self.base_offset + offset
        timestamps = self._entries
        if not timestamps:
            return -1, self.base_offset
        return timestamps[-1], self.base_offset + self._offsets[-1]

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if it is younger than the last one; otherwise it says nothing new."""
        timestamps = self._loaded()
        if timestamp > (timestamps[-1] if timestamps else -1):
            timestamps.append(timestamp)
            self._offsets.append(offset - self.base_offset)
            if len(timestamps) - self._file.written >= PENDING_LIMIT:
                self._write_behind()

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The youngest entry at or before ``timestamp``; (-1, base offset) when all are later."""
        timestamps = self._loaded()
        slot = bisect_right(timestamps, timestamp) - 1
        if slot < 0:
            return -1, self.base_offset
        return timestamps[slot], self.base_offset + self._offsets[slot]

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above ``offset``."""
        timestamps = self._loaded()
        keep = bisect_left(self._offsets, max(offset - self.base_offset, 0))
        del timestamps[keep:], self._offsets[keep:]
        self._file.cut(keep)

    def reset(self) -> None:
        """Empty the index, whatever the file holds."""
        self._entries, self._offsets = array("q"), array("i")
        self._file.cut(0)

    def write(self) -> bool:
        """Bring the file up to the entries in memory; True where it lacked some."""
        if self._entries is None or len(self._entries) == self._file.written:
            return False
        start = self._file.written
        pending = zip(self._entries[start:], self._offsets[start:], strict=True)
        self._file.write(b"".join(_TIME_ENTRY.pack(time, offset) for time, offset in pending))
        return True
