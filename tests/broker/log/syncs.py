"""Syncs under control: who asks for them, and a disk that takes its time until it is let go.

``with watching() as syncs:`` stands behind the data files, in the place of ``os``. Syncs asked for
by the threads of group commit wait while the disk is held; every other call goes straight through.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas_broker.log import files
from tests.waiting import ANSWER, seconds

COMMIT_THREADS = "commit "
"""How the names of the threads begin that make records count."""


class Syncs:
    """What `os` does, with a hand on fsync."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        """Of every sync: the name of the thread, and the path."""
        self.broken = False
        """Whether the syncs of group commit fail."""
        self._flowing = threading.Event()
        self._flowing.set()
        self._reached = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, fd: int, /) -> None:
        name = threading.current_thread().name
        self.asked.append((name, str(Path(f"/proc/self/fd/{fd}").readlink())))
        if name.startswith(COMMIT_THREADS):
            self._reached.set()
            assert self._flowing.wait(seconds(ANSWER))
            if self.broken:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fsync(fd)

    def hold(self) -> None:
        """From now on group commit waits for the disk."""
        self._reached.clear()
        self._flowing.clear()

    def wait_for_one(self) -> None:
        """Until group commit waits for the disk."""
        assert self._reached.wait(seconds(ANSWER))

    def let_go(self) -> None:
        """Let those who wait, and all later ones, through."""
        self._flowing.set()


@contextmanager
def watching() -> Iterator[Syncs]:
    """Every data file made meanwhile syncs through what this yields."""
    before, syncs = files.system, Syncs()
    files.system = syncs
    try:
        yield syncs
    finally:
        syncs.let_go()
        files.system = before
