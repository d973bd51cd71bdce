"""Small file systems of a test's own, mounted as root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


@contextmanager
def small_volume(at: Path, *, megabytes: int) -> Iterator[Path]:
    """A file system in memory that is full after so many megabytes."""
    at.mkdir(parents=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", at)
    try:
        yield at
    finally:
        _run("umount", "--lazy", at)


@contextmanager
def ext4_volume(at: Path, *, megabytes: int = 24) -> Iterator[Path]:
    """An ext4 of its own in a file beside the mount point; `shut_down` takes its device away."""
    image = at.with_suffix(".img")
    at.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    _run("mkfs.ext4", "-q", "-F", image)
    _run("mount", "-o", "loop", image, at)
    try:
        yield at
    finally:
        _run("umount", "--lazy", at)


def shut_down(volume: Path) -> None:
    """Let every access fail with EIO from now on, and drop what is not on the device."""
    _run("xfs_io", "-x", "-c", "shutdown", volume)
