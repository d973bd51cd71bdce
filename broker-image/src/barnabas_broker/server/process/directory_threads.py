"""Threads that wait for disks: a directory whose disk hangs does not occupy those of another.

The executor of the event loop has a handful of threads for all its users. A sync that hangs there
for each of some partitions would keep out what has nothing to do with disks, such as what a new
controller has to send.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


class DirectoryThreads:
    """For each directory threads of its own, made when it first has work. Lives on the loop."""

    def __init__(self, name: str, count: int) -> None:
        """Each directory has up to `count` threads, which are called `name`."""
        self._name = name
        self._count = count
        self._of: dict[Path, ThreadPoolExecutor] = {}

    def submit(self, directory: Path, work: Callable[[], Result]) -> "Future[Result]":
        """Have work done that waits for the disk of a directory."""
        threads = self._of.get(directory)
        if threads is None:
            threads = self._of[directory] = ThreadPoolExecutor(
                self._count, thread_name_prefix=self._name
            )
        return threads.submit(work)

    def close(self) -> None:
        """Finish what was begun, and end the threads. Blocks."""
        for threads in self._of.values():
            threads.shutdown(wait=True)
