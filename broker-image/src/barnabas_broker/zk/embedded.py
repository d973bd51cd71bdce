"""The embedded store: coordination data of a broker that has no ZooKeeper, kept in one file.

The file lies in the first log directory, where an Apache broker started on the same directory
ignores it (it looks at directories only). Opening reads it, ends the previous process's session
and writes a fresh snapshot beside it, renamed into place; from then on each transaction is one
appended line, on disk before `commit` returns. `journal.py` describes the format and what is
made of a file that a crash left behind.
"""

import io
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas_broker.zk import journal
from barnabas_broker.zk.store import Committed, CoordinationError, Operation, Subscriber, Watch
from barnabas_zookeeper.errors import ZooKeeperError
from barnabas_zookeeper.tree import Delete, Stat, Tree

FILE_NAME = "barnabas-znodes.journal"
# One process, one session; it ends when the file is opened again.
SESSION = 1

_log = logging.getLogger(__name__)


class EmbeddedStore:
    """A CoordinationStore in this process. Made by `open`."""

    # A transaction is one line of a file, however long.
    transaction_bytes_max = sys.maxsize

    def __init__(self, path: Path, tree: Tree, descriptor: int) -> None:
        self.session = SESSION
        self._path = path
        self._tree = tree
        self._descriptor = descriptor
        self._broken: str | None = None

    @classmethod
    def open(cls, directory: Path, *, now_ms: int) -> "EmbeddedStore":
        """Open the store of a log directory, which must exist; create it if there is none.

        The caller holds the directory's lock, so nobody else has the file open. Raises
        CoordinationError, in one line, where the file is damaged or cannot be read or written.
        """
        path = directory / FILE_NAME
        try:
            tree = _read(path)
            _end_sessions(tree, now_ms)
            descriptor = _replace(path, tree)
        except journal.DamagedJournalError as error:
            raise CoordinationError(
                f"{path} is damaged ({error}); restore it from a copy, or move it away to have "
                "topics taken from the directories on disk, without their configuration"
            ) from error
        except OSError as error:
            raise CoordinationError(f"{path}: {error.strerror}") from error
        return cls(path, tree, descriptor)

    def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Data and stat of a znode. Raises NoNodeError."""
        return self._tree.get(path)

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes | None, Stat] | None]:
        """Data and stat of each znode, None for those that do not exist."""
        return [self.get(path) if self.exists(path) is not None else None for path in paths]

    def exists(self, path: str) -> Stat | None:
        """The stat of a znode, None if there is none."""
        return self._tree.exists(path)

    def children(self, path: str) -> list[str]:
        """Names of the children, sorted. Raises NoNodeError."""
        return self._tree.children(path)

    def commit(self, operations: Sequence[Operation], *, now_ms: int) -> Committed:
        """Apply all operations or none; on return they are on disk.

        Raises ZooKeeperError where one is refused. Raises CoordinationError where the disk fails;
        nobody knows then whether the line will be read again, so the store takes no more writes.
        """
        if self._broken is not None:
            raise CoordinationError(self._broken)
        committed = self._tree.commit(operations, now_ms=now_ms)
        line = journal.encode_transaction(operations, zxid=committed.zxid, now_ms=now_ms)
        try:
            _write(self._descriptor, line)
            os.fdatasync(self._descriptor)
        except OSError as error:
            self._broken = f"{self._path} cannot be written: {error.strerror}"
            raise CoordinationError(self._broken) from error
        return committed

    def subscribe(self, subscriber: Subscriber) -> None:
        """Nobody else writes here, so there is nothing to tell."""

    def watch(self, path: str, kind: Watch) -> None:
        """Nobody else writes here, so there is nothing to watch for."""

    def wait_until_gone(self, path: str) -> bool:
        """Sessions end when the file is opened, so there is nothing to wait for."""
        return self.exists(path) is None

    def close(self) -> None:
        """Close the file; the session's znodes are deleted when it is next opened."""
        os.close(self._descriptor)
        self._broken = f"{self._path} is closed"


def _read(path: Path) -> Tree:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Tree()
    read = journal.decode(io.BytesIO(content))
    if read.torn:
        _log.warning("%s ended in a transaction that was not finished; it is dropped", path)
    return read.tree


def _end_sessions(tree: Tree, now_ms: int) -> None:
    # Ephemeral znodes have no children, so the order of deletion does not matter.
    gone = [Delete(path) for session in tree.sessions() for path in tree.ephemerals(session)]
    if gone:
        try:
            tree.commit(gone, now_ms=now_ms)
        except ZooKeeperError as error:
            raise AssertionError("the tree refuses to delete what it lists") from error


def _replace(path: Path, tree: Tree) -> int:
    """Write a snapshot in place of the file; returns a descriptor to append to it with."""
    temporary = path.with_suffix(".tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        _write(descriptor, b"".join(journal.encode_snapshot(tree)))
        os.fsync(descriptor)
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _sync_directory(directory: Path) -> None:
    # Without it a crash may bring back the name of the old file, or of none.
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
