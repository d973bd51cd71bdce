"""The aborted transactions of one segment: the ``.txnindex`` file.

Layout, 34 bytes an entry, big-endian, no header::

    version int16 (0) | producer id int64 | first offset int64 | last offset int64
    | last stable offset int64

``last offset`` is that of the abort marker, and the entry lies in the segment that holds the
marker. ``last stable offset`` is the log's right after the marker; it lets a reader stop looking:
no later entry can concern offsets below it. The file does not exist before the first abort
(Apache Kafka's TransactionIndex).
"""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path
from typing import NamedTuple

from barnabas_broker.log.files import DataFile
from barnabas_broker.log.indexes import CorruptIndexError

ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction: its producer, where it began, its marker, and the LSO after it."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def parse(data: bytes, path: Path) -> list[AbortedTransaction]:
    """The entries in a file's bytes; raises CorruptIndexError for torn or unknown ones."""
    if len(data) % ENTRY.size:
        raise CorruptIndexError(f"{path} has {len(data)} bytes, not a multiple of {ENTRY.size}")
    entries = []
    for version, *fields in ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise CorruptIndexError(f"{path} has an entry of version {version}")
        entries.append(AbortedTransaction(*fields))
    return entries


class TransactionIndex:
    """Entries in memory, each appended to the file at once if that can be done: aborts are rare."""

    __slots__ = ("_entries", "_file", "_written", "base_offset", "path")

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._file: DataFile | None = None
        self._entries: list[AbortedTransaction] = []
        self._written = 0

    def load(self) -> None:
        """Read the file if there is one; raises CorruptIndexError when it contradicts itself."""
        try:
            self._file = DataFile.open(self.path)
        except FileNotFoundError:
            return
        self._entries = parse(self._file.read(0, self._file.size), self.path)
        self._written = len(self._entries)
        if any(entry.last_offset < self.base_offset for entry in self._entries):
            raise CorruptIndexError(f"{self.path} has a transaction that ended before the segment")

    def append(self, entry: AbortedTransaction) -> None:
        """Add an entry, whose marker is in the log; the next flush writes it if this cannot."""
        self._entries.append(entry)
        with contextlib.suppress(OSError):
            self.write()

    def write(self) -> bool:
        """Bring the file up to the entries in memory; True where it lacked some. Raises OSError."""
        pending = self._entries[self._written :]
        if not pending:
            return False
        if self._file is None:
            self._file = DataFile.open(self.path, create=True)
        self._file.append(b"".join(ENTRY.pack(_VERSION, *entry) for entry in pending))
        self._written = len(self._entries)
        return True

    def collect(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Aborts that concern offsets in [start, end), and whether later segments can be left."""
        found = []
        for entry in self._entries:
            if entry.last_offset >= start and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose marker lies at or above ``offset``."""
        kept = [entry for entry in self._entries if entry.last_offset < offset]
        if len(kept) < self._written and self._file is not None:
            self._file = self._file.truncate(len(kept) * ENTRY.size)
        self._entries = kept
        self._written = min(self._written, len(kept))

    def reset(self) -> None:
        """Empty the index, whatever the file holds."""
        self._entries = []
        self._written = 0
        if self._file is None and self.path.exists():
            self._file = DataFile.open(self.path)
        if self._file is not None:
            self._file = self._file.truncate(0)

    @property
    def entries(self) -> list[AbortedTransaction]:
        return list(self._entries)

    @property
    def exists(self) -> bool:
        return self._file is not None
