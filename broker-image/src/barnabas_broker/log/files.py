"""The one door to data files: every open, write, sync and rename of the log goes through here.

Guarantees of this module to all modules above it:

* No user-space buffering. What ``append`` returned for survives the death of the process.
* A failed append leaves no torn middle: the file is cut back to its old end before the error
  goes up.
* A descriptor lives exactly as long as its :class:`DataFile` object. A sender of bytes of a
  file holds the object (through its :class:`FileSlice`), so retention, roll, deletion and close
  may drop theirs at any time: no descriptor number is ever closed, and then given to another
  file, under a sender.
* Truncation is the one operation that could put other bytes under a slice. ``truncate`` therefore
  retires the object and hands out a successor; ``FileSlice.intact`` shows the sender of an older
  slice, before each send, that its bytes are gone. Consumers never meet this: they read below the
  high watermark, which is not truncated outside unclean leader election.

Every call that changes a disk goes through ``system``, which is ``os`` itself: a call costs what it
costs anywhere, and the tests put a disk in its place that fails, forgets and loses power.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

#: Mode of new data files; the umask of the process narrows it.
_FILE_MODE = 0o644

_READ_WRITE = os.O_RDWR | os.O_CLOEXEC
_READ_ONLY = os.O_RDONLY | os.O_CLOEXEC

_Bytes = bytes | bytearray | memoryview


class SystemCalls(Protocol):
    """The calls data files are made with, as ``os`` has them. All raise OSError."""

    def open(self, path: Path, flags: int, mode: int = ..., /) -> int: ...
    def close(self, fd: int, /) -> None: ...
    def dup(self, fd: int, /) -> int: ...
    def pread(self, fd: int, length: int, position: int, /) -> bytes: ...
    def pwrite(self, fd: int, data: _Bytes, position: int, /) -> int: ...
    def ftruncate(self, fd: int, size: int, /) -> None: ...
    def fsync(self, fd: int, /) -> None: ...
    def rename(self, source: Path, target: Path, /) -> None: ...
    def unlink(self, path: Path, /) -> None: ...
    def mkdir(self, path: Path, /) -> None: ...
    def rmdir(self, path: Path, /) -> None: ...


#: The one way to the disk; see the module's docstring.
system: SystemCalls = os


class SyncError(OSError):
    """The device did not take what a file holds.

    Its pages may be gone, and the next sync would not say so: the file is never to be trusted or
    synced again.
    """


def _sync(fd: int) -> None:
    try:
        system.fsync(fd)
    except OSError as error:
        raise SyncError(*error.args) from error


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
            system.close(fd)

    @classmethod
    def create(cls, path: Path, *, preallocate: int = 0) -> DataFile:
        """Create an empty file (an existing one is emptied), sparse up to ``preallocate`` bytes."""
        file = cls(path, system.open(path, _READ_WRITE | os.O_CREAT | os.O_TRUNC, _FILE_MODE), 0)
        if preallocate:
            system.ftruncate(file.fd, preallocate)
        return file

    @classmethod
    def open(cls, path: Path, *, create: bool = False, writable: bool = True) -> DataFile:
        """Open an existing file whose logical end is its physical end."""
        flags = _READ_WRITE if writable else _READ_ONLY
        fd = system.open(path, flags | (os.O_CREAT if create else 0), _FILE_MODE)
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
            written = system.pwrite(self.fd, data, position)
            if written != length:
                self._append_rest(memoryview(data), position, written)
        except OSError:
            system.ftruncate(self.fd, position)
            raise
        self.size = position + length
        return position

    def _append_rest(self, data: memoryview, position: int, done: int) -> None:
        while done < len(data):
            done += system.pwrite(self.fd, data[done:], position + done)

    def write_at(self, data: bytes, position: int) -> None:
        """Write ``data`` at ``position`` without moving the logical end backwards."""
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += system.pwrite(self.fd, view[done:], position + done)
        self.size = max(self.size, position + len(data))

    def read(self, position: int, length: int) -> bytes:
        """Up to ``length`` bytes at ``position``; fewer only at the logical end of the file."""
        length = min(length, self.size - position)
        if length <= 0:
            return b""
        data = system.pread(self.fd, length, position)
        while len(data) < length:
            more = system.pread(self.fd, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def truncate(self, size: int) -> DataFile:
        """Cut the file to ``size`` bytes and return the object to use from now on.

        This object keeps its descriptor for slices in flight; see ``FileSlice.intact``.
        """
        successor = DataFile(self.path, system.dup(self.fd), size)
        system.ftruncate(self.fd, size)
        self._cut_at = size
        self._successor = successor
        self.size = min(self.size, size)
        return successor

    def trim(self) -> bool:
        """Give back what was preallocated; False for an exact file, which is not touched."""
        if os.fstat(self.fd).st_size == self.size:
            return False
        system.ftruncate(self.fd, self.size)
        return True

    def set_physical_size(self, size: int) -> None:
        """Grow (sparsely) or trim the file on disk; the logical end is the caller's business."""
        system.ftruncate(self.fd, size)

    def holds_unchanged(self, end: int) -> bool:
        """True while the bytes below ``end`` are those that were there when the object was got."""
        file = self
        while file._successor is not None:
            if end > file._cut_at:
                return False
            file = file._successor
        return True

    def sync(self) -> None:
        """Force data and metadata to the device; safe in any thread. Raises SyncError."""
        _sync(self.fd)

    def rename(self, path: Path) -> None:
        system.rename(self.path, path)
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
    """Make creations, renames and removals in ``directory`` durable. Raises SyncError."""
    fd = system.open(directory, _READ_ONLY | os.O_DIRECTORY)
    try:
        _sync(fd)
    finally:
        system.close(fd)


def sync_file(path: Path) -> None:
    """Force one file to the device; a file that has gone meanwhile needs no syncing."""
    try:
        fd = system.open(path, _READ_ONLY)
    except FileNotFoundError:
        return
    try:
        _sync(fd)
    finally:
        system.close(fd)


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Put ``data`` at ``path`` atomically, through ``<name>.tmp`` and a rename.

    Not ``durable``: the new content survives the process, not the machine, until a sync of
    the file and its directory.
    """
    temporary = path.with_name(path.name + ".tmp")
    fd = system.open(temporary, _READ_WRITE | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    try:
        view = memoryview(data)
        done = 0
        while done < len(view):
            done += system.pwrite(fd, view[done:], done)
        if durable:
            _sync(fd)
    except OSError:
        # On a full disk the partial file takes room and is of no use.
        with contextlib.suppress(OSError):
            system.unlink(temporary)
        raise
    finally:
        system.close(fd)
    system.rename(temporary, path)
    if durable:
        sync_directory(path.parent)


def read_file(path: Path) -> bytes:
    """All of a small file."""
    file = DataFile.open(path, writable=False)
    return file.read(0, file.size)


def set_times(path: Path, modified_ns: int) -> None:
    """Give a file the age of another, in nanoseconds since the epoch."""
    os.utime(path, ns=(modified_ns, modified_ns))


def list_directory(directory: Path) -> tuple[list[str], list[str]]:
    """The names of the files and of the directories in ``directory``, both sorted."""
    files: list[str] = []
    directories: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            (directories if entry.is_dir() else files).append(entry.name)
    return sorted(files), sorted(directories)


def rename(source: Path, target: Path) -> None:
    """Rename a file or directory; a file at ``target`` is replaced."""
    system.rename(source, target)


def add_suffix(paths: Iterable[Path], suffix: str) -> list[Path]:
    """Add ``suffix`` to the names of files, in order; return the new paths.

    Raises OSError, with all of them as they were.
    """
    renamed: list[Path] = []
    try:
        for path in paths:
            target = path.with_name(path.name + suffix)
            rename(path, target)
            renamed.append(target)
    except OSError:
        remove_suffix(reversed(renamed), suffix)
        raise
    return renamed


def remove_suffix(paths: Iterable[Path], suffix: str) -> None:
    """Take ``suffix`` off the names of files again. Raises OSError."""
    for path in paths:
        rename(path, path.with_name(path.name.removesuffix(suffix)))


def make_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing; one that exists is left as it is.

    Each new one is durable in its parent at once: everything a broker will ever store hangs there.
    """
    if path.is_dir():
        return
    if not path.parent.exists():
        make_directory(path.parent)
    system.mkdir(path)
    sync_directory(path.parent)


def make_partition_directory(path: Path) -> None:
    """Make one directory; a flush or checkpoint makes it durable, for many directories at once."""
    system.mkdir(path)


def remove_file(path: Path) -> None:
    """Unlink a file; one that has gone already is fine."""
    with contextlib.suppress(FileNotFoundError):
        system.unlink(path)


def remove_files(paths: Iterable[Path]) -> None:
    """Unlink files, those that have gone already included; safe in any thread."""
    for path in paths:
        remove_file(path)


def remove_tree(path: Path) -> None:
    """Remove a directory and all in it; safe in any thread. Raises OSError."""
    with os.scandir(path) as found:
        entries = list(found)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            remove_tree(path / entry.name)
        else:
            remove_file(path / entry.name)
    system.rmdir(path)
