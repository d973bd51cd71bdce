"""The file of a znode tree on a disk: read at the start, replaced by a snapshot, appended to."""

import contextlib
import io
import logging
import os
from pathlib import Path

from barnabas_zookeeper import journal
from barnabas_zookeeper.tree import Tree

_log = logging.getLogger(__name__)


def read(path: Path) -> Tree:
    """The tree that a file describes, an empty one without a file.

    Raises DamagedJournalError, OSError.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Tree()
    return _decoded(content, path)


def read_again(descriptor: int, path: Path) -> Tree:
    """As `read`, through the descriptor of `replace`: the process may have none left to open."""
    content = bytearray()
    while piece := os.pread(descriptor, os.fstat(descriptor).st_size, len(content)):
        content += piece
    return _decoded(bytes(content), path)


def _decoded(content: bytes, path: Path) -> Tree:
    found = journal.decode(io.BytesIO(content))
    if found.torn:
        _log.warning("Incomplete transaction dropped at the end of %s", path)
    return found.tree


def replace(path: Path, tree: Tree) -> int:
    """Put a snapshot in place of the file; returns a descriptor to read and append to it with."""
    temporary = path.with_suffix(".tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        write(descriptor, b"".join(journal.encode_snapshot(tree)))
        os.fsync(descriptor)
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return descriptor


def write(descriptor: int, data: bytes) -> None:
    """Write all of it; what is there after an OSError is unknown."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def _sync_directory(directory: Path) -> None:
    # Without it a crash may bring back the name of the old file, or of none.
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
