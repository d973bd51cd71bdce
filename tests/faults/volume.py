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
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import wait_for

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
        # Once one thread has stopped, each other stops before it runs on outside the kernel.
        wait_for(
            f"the state of process {program}, to be T",
            lambda: _state(program),
            until=lambda state: state == "T",
        )
        _run("xfs_io", "-x", "-c", "shutdown", str(self.path))

    def reboot(self) -> None:
        """Mount again what is left. No program may have a file open there."""
        self._unmount()
        # A container that starts has a copy of each mount for a moment. As long as one is there,
        # mounting would give us the file system that was shut down.
        wait_for(
            f"where {self._image} is mounted besides, to be nowhere",
            lambda: _ended("losetup", "--associated", str(self._image)).stdout,
            until=lambda printed: not printed,
        )
        self._mount()

    def _unmount(self) -> None:
        """What the broker had started ends a moment after it."""
        wait_for(
            f"what umount {self.path} says",
            lambda: _ended("umount", str(self.path)),
            until=lambda done: done.returncode == 0,
        )

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))


def _state(program: int) -> str:
    """The state of its first thread, which follows the name in parentheses; T is stopped."""
    status = Path(f"/proc/{program}/stat").read_text(encoding="utf-8")
    return status.rpartition(")")[2].split()[0]


def _ended(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _run(*command: str) -> None:
    done = _ended(*command)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
