"""The one door to data files: every open, write, sync and rename of the log goes through here.

Rules this module keeps for everybody above it:

* No user-space buffering. What ``append`` returned for survives the death of the process.
* A failed append leaves no torn middle: the file is cut back to its old end before the error
  goes up.
* A descriptor lives exactly as long as its :class:`DataFile` object. Whoever sends bytes of a
  file holds the object (through its :class:`FileSlice`), so retention, roll, deletion and close
  may drop theirs at any time: no descriptor number is ever closed, and then given to another
  file, under a sender.
* Truncation is the one operation that could put other bytes under a slice. ``truncate`` therefore
  retires the object and hands out a successor; ``FileSlice.intact`` tells the sender of an older
  slice, before each send, that its bytes are gone. Consumers never meet this: they read below the
  high watermark, which is not truncated outside unclean leader election.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

#: Mode of new data files; the umask of the process narrows it.
_FILE_MODE = 0o644

_READ_WRITE = os.O_RDWR | os.O_CLOEXEC


class DataFile:
    """An open data file with a logical end; reads and writes are positional.

    ``size`` is the logical end in bytes; the file on disk may be longer while preallocated.
    """

    __slots__ = ("_cut_at", "_successor", "fd", "path", "size")

    def __init__(self, path: Path, fd: int, size: int) -> None:
        self.path = path
        self.fd = fd
        self.size = size
        self._cut_at = -1
        self._successor: DataFile | None = None

    def __del__(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    @classmethod
    def create(cls, path: Path, *, preallocate: int = 0) -> DataFile:
        """Create an empty file (an existing one is emptied), sparse up to ``preallocate`` bytes."""
        file = cls(path, os.open(path, _READ_WRITE | os.O_CREAT | os.O_TRUNC, _FILE_MODE), 0)
        if preallocate:
            os.ftruncate(file.fd, preallocate)
        return file

    @classmethod
    def open(cls, path: Path, *, create: bool = False, writable: bool = True) -> DataFile:
        """Open an existing file whose logical end is its physical end."""
        flags = _READ_WRITE if writable else os.O_RDONLY | os.O_CLOEXEC
        fd = os.open(path, flags | (os.O_CREAT if create else 0), _FILE_MODE)
        file = cls(path, fd, 0)
        file.size = os.fstat(fd).st_size
        return file

    def append(self, data: bytes | bytearray | memoryview) -> int:
        """Write ``data`` (bytes, one dimension) at the end; return the position it starts at.

        Raises OSError with the file cut back to its old end.
        """
        position = self.size
        length = len(data)
        try:
            written = os.pwrite(self.fd, data, position)
            if written != length:
                self._append_rest(memoryview(data), position, written)
        except OSError:
            os.ftruncate(self.fd, position)
            raise
        self.size = position + length
        return position

    def _append_rest(self, data: memoryview, position: int, done: int) -> None:
        while done < len(data):
            done += os.pwrite(self.fd, data[done:], position + done)

    def write_at(self, data: bytes, position: int) -> None:
        """Write ``data`` at ``position`` without moving the logical end backwards."""
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += os.pwrite(self.fd, view[done:], position + done)
        self.size = max(self.size, position + len(data))

    def read(self, position: int, length: int) -> bytes:
        """Up to ``length`` bytes at ``position``; fewer only at the logical end of the file."""
        length = min(length, self.size - position)
        if length <= 0:
            return b""
        data = os.pread(self.fd, length, position)
        while len(data) < length:
            more = os.pread(self.fd, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def truncate(self, size: int) -> DataFile:
        """Cut the file to ``size`` bytes and return the object to use from now on.

        This object keeps its descriptor for slices in flight; see ``FileSlice.intact``.
        """
        os.ftruncate(self.fd, size)
        successor = DataFile(self.path, os.dup(self.fd), size)
        self._cut_at = size
        self._successor = successor
        self.size = min(self.size, size)
        return successor

    def trim(self) -> None:
        """Give back what was preallocated; an exact file is not touched, its times stay."""
        if os.fstat(self.fd).st_size != self.size:
            os.ftruncate(self.fd, self.size)

    def set_physical_size(self, size: int) -> None:
        """Grow (sparsely) or trim the file on disk; the logical end is the caller's business."""
        os.ftruncate(self.fd, size)

    def holds_unchanged(self, end: int) -> bool:
        """True while the bytes below ``end`` are those that were there when the object was got."""
        file = self
        while file._successor is not None:
            if end > file._cut_at:
                return False
            file = file._successor
        return True

    def sync(self) -> None:
        """Force data and metadata to the device; safe in any thread."""
        os.fsync(self.fd)

    def rename(self, path: Path) -> None:
        self.path.rename(path)
        self.path = path

    def modified_ms(self) -> int:
        """Last modification, milliseconds since the epoch."""
        return os.fstat(self.fd).st_mtime_ns // 1_000_000


class FileSlice(NamedTuple):
    """Whole batches of one segment, ready for sendfile; hold it until the last byte is sent.

    ``first_offset`` is the base offset of the first batch, which may lie below the offset asked
    for. Before each send ask ``intact``: when false the log was truncated under the slice and the
    connection must be closed, for its announced length cannot be honoured.
    """

    file: DataFile
    position: int
    length: int
    first_offset: int

    @property
    def intact(self) -> bool:
        return self.file.holds_unchanged(self.position + self.length)

    def read(self) -> bytes:
        return self.file.read(self.position, self.length)


def sync_directory(directory: Path) -> None:
    """Make creations, renames and removals in ``directory`` durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(path: Path) -> None:
    """Force one file to the device; a file that has gone meanwhile needs no syncing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Put ``data`` at ``path`` atomically, through ``<name>.tmp`` and a rename.

    Not ``durable``: the new content survives the process, not the machine, until somebody syncs
    the file and its directory.
    """
    temporary = path.with_name(path.name + ".tmp")
    fd = os.open(temporary, _READ_WRITE | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    try:
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += os.write(fd, view[done:])
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    if durable:
        sync_directory(path.parent)


def remove_files(paths: Iterable[Path]) -> None:
    """Unlink files, those that have gone already included; safe in any thread."""
    for path in paths:
        path.unlink(missing_ok=True)
