"""The lock that keeps a second broker out of a log directory.

A POSIX record lock on ``.lock``, which is what Java's FileLock takes on Linux: an Apache broker
and ours exclude each other. The kernel drops it with the process, however that ends. Such locks
belong to the process, so a table of our own keeps two brokers of one process apart.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from barnabas_broker.log import files
from barnabas_broker.log.names import LOCK

_held: set[Path] = set()


class AlreadyLockedError(Exception):
    """Another broker uses the directory."""


class DirectoryLock:
    """Held from construction to ``release``. Raises AlreadyLockedError, OSError."""

    __slots__ = ("_fd", "_path")

    def __init__(self, directory: Path) -> None:
        self._path = directory.resolve() / LOCK
        if self._path in _held:
            raise AlreadyLockedError(str(directory))
        self._fd = files.system.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            files.system.close(self._fd)
            raise AlreadyLockedError(str(directory)) from error
        _held.add(self._path)

    def release(self) -> None:
        if self._fd >= 0:
            _held.discard(self._path)
            files.system.close(self._fd)
            self._fd = -1
