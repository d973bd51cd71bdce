"""A disk that fails on demand, under one directory tree of a process that a test starts.

A small library (disk.c, compiled with gcc when it is first needed) is preloaded into the process
and stands before its file calls. Which of them fail, and how, the test says while the process
runs, by assigning to :attr:`FaultyDisk.faults`.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

_SOURCE = Path(__file__).with_name("disk.c")


class Faults(ctypes.Structure):
    """What the library reads and counts; an errno of 0 is no fault. Laid out as in disk.c."""

    #: bytes that writes still take before ``write_errno``; the last one may be a short write
    room: int
    #: what the volume reports as free; -1 is the truth
    free_bytes: int
    #: writes seen so far
    writes: int
    #: fsync and fdatasync seen so far, those of directories included
    syncs: int
    #: reads seen so far
    reads: int
    #: reads that still succeed before ``read_errno``
    good_reads: int
    write_errno: int
    #: of read, pread and sendfile
    read_errno: int
    sync_errno: int
    #: of creating, renaming, removing and truncating files
    change_errno: int
    #: how much longer each fsync takes
    sync_delay_ms: int

    _fields_ = (
        ("room", ctypes.c_int64),
        ("free_bytes", ctypes.c_int64),
        ("writes", ctypes.c_int64),
        ("syncs", ctypes.c_int64),
        ("reads", ctypes.c_int64),
        ("good_reads", ctypes.c_int64),
        ("write_errno", ctypes.c_int32),
        ("read_errno", ctypes.c_int32),
        ("sync_errno", ctypes.c_int32),
        ("change_errno", ctypes.c_int32),
        ("sync_delay_ms", ctypes.c_int32),
    )


@functools.cache
def _workspace() -> tempfile.TemporaryDirectory[str]:
    """Where the library and the control blocks of this test process lie, until it ends."""
    return tempfile.TemporaryDirectory(prefix="faults-")


@functools.cache
def library() -> Path:
    """The compiled library; once per test process. Raises CalledProcessError after gcc's words."""
    target = Path(_workspace().name) / "disk.so"
    command = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(target)]
    subprocess.run([*command, str(_SOURCE), "-ldl"], check=True)
    return target


class FaultyDisk:
    """The tree at ``prefix`` (absolute, without symbolic links) for one process at a time.

    Start the process with :attr:`environment` added to its own. Without faults it only counts.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        file, self._controls = tempfile.mkstemp(suffix=".controls", dir=_workspace().name)
        os.truncate(file, ctypes.sizeof(Faults))
        self._map = mmap.mmap(file, ctypes.sizeof(Faults))
        os.close(file)
        self.faults = Faults.from_buffer(self._map)
        self.heal()

    @property
    def environment(self) -> dict[str, str]:
        """What the process needs in its environment."""
        return {
            "LD_PRELOAD": str(library()),
            "FAULTS_PREFIX": str(self.prefix),
            "FAULTS_CONTROLS": self._controls,
        }

    def fill(self, room: int = 0) -> None:
        """Be full after ``room`` more bytes: writes end with ENOSPC and no block is free."""
        self.faults.room = room
        self.faults.free_bytes = 0
        self.faults.write_errno = errno.ENOSPC

    def break_down(self) -> None:
        """Fail all but opening existing files with EIO, as a lost device does."""
        faults = self.faults
        faults.room = 0
        faults.write_errno = faults.read_errno = errno.EIO
        faults.sync_errno = faults.change_errno = errno.EIO

    def heal(self) -> None:
        """Be a good disk from now on; what was counted stays."""
        faults = self.faults
        faults.room = faults.good_reads = 0
        faults.free_bytes = -1
        faults.write_errno = faults.read_errno = faults.sync_errno = faults.change_errno = 0
        faults.sync_delay_ms = 0

    def close(self) -> None:
        """Give the control block up; the process must have ended."""
        del self.faults
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
