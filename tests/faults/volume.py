"""A file system of its own that can lose power: a loop mount, shut down under its programs.

Shutting down drops everything that was not synced, as a power failure does; after unmounting and
mounting again the file system is what a reboot would find. Needs root and the tools of the file
system.

A power failure takes the programs too, and here they have to go first: XFS and ext4 let an fsync
that is under way when they are shut down end well, now and then, though what it was to sync is
lost (seen with Linux 6.18 and a program that does nothing else). Whoever still ran would pass that
on, which nobody does without power.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE_S = 60.0
IMAGE_BYTES = 400 << 20  # Sparse. Younger mkfs.xfs refuses less than 300 MiB.


class Volume:
    """A fresh file system of kind ext4 or xfs, mounted at `path`."""

    def __init__(self, directory: Path, kind: str) -> None:
        self.path = directory / "volume"
        self._image = directory / f"{kind}.image"
        self._kind = kind

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(IMAGE_BYTES)
        _run(f"mkfs.{self._kind}", "-q", str(self._image))
        self._mount()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._unmount()
        else:  # Perhaps a program was left there.
            _run("umount", "--lazy", str(self.path))

    def lose_power(self, program: int) -> None:
        """Stop the process `program` for good, and drop what was not synced.

        A call it is in goes on, but never returns to it. It is left to be killed.
        """
        os.kill(program, signal.SIGSTOP)
        give_up_at = time.monotonic() + PATIENCE_S
        # Once one thread has stopped, each other stops before it runs on outside the kernel.
        while not _is_stopped(program):
            assert time.monotonic() < give_up_at, "the program does not stop"
        _run("xfs_io", "-x", "-c", "shutdown", str(self.path))

    def reboot(self) -> None:
        """Mount again what is left. No program may have a file open there."""
        self._unmount()
        give_up_at = time.monotonic() + PATIENCE_S
        # A container that starts has a copy of each mount for a moment. As long as one is there,
        # mounting would give us the file system that was shut down.
        while _ended("losetup", "--associated", str(self._image)).stdout:
            assert time.monotonic() < give_up_at, f"{self._image} is mounted elsewhere"
        self._mount()

    def _unmount(self) -> None:
        """What the broker had started ends a moment after it."""
        give_up_at = time.monotonic() + PATIENCE_S
        while _ended("umount", str(self.path)).returncode:
            assert time.monotonic() < give_up_at, f"{self.path} is busy"

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))


def _is_stopped(program: int) -> bool:
    """Whether its first thread is; the state follows the name, which is in parentheses."""
    status = Path(f"/proc/{program}/stat").read_text(encoding="utf-8")
    return status.rpartition(")")[2].split()[0] == "T"


def _ended(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _run(*command: str) -> None:
    done = _ended(*command)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
