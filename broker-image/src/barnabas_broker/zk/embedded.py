"""The embedded store: coordination data of a broker that has no ZooKeeper, kept in one file.

The file lies in the first log directory, where an Apache broker started on the same directory
ignores it (it reads directories only). Opening reads it, ends the previous process's session
and writes a fresh snapshot beside it, renamed into place; from then on each transaction is one
appended line, on disk before `commit` returns. `journal.py` describes the format and what is
made of a file that a crash left behind. A second file beside it holds room for a full disk.
"""

import errno
import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from barnabas_broker.invariants import violated
from barnabas_broker.zk.store import Committed, CoordinationError, Operation, Subscriber, Watch
from barnabas_zookeeper import journal, journal_file
from barnabas_zookeeper.errors import ZooKeeperError
from barnabas_zookeeper.tree import Delete, Stat, Tree

FILE_NAME = "barnabas-znodes.journal"
RESERVE_NAME = "barnabas-znodes.reserve"
RESERVE_LEAST = 1 << 20
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# One process, one session; it ends when the file is opened again.
SESSION = 1

_log = logging.getLogger(__name__)


class EmbeddedStore:
    """A CoordinationStore in this process. Made by `open`."""

    # A transaction is one line of a file, however long.
    transaction_bytes_max = sys.maxsize

    def __init__(self, path: Path, tree: Tree, descriptor: int, reserve: "_Reserve") -> None:
        self.session = SESSION
        self._path = path
        self._tree = tree
        self._descriptor = descriptor
        self._broken: str | None = None
        self._reserve = reserve
        # The controller's thread is not the only one that comes here: offsets have their own.
        self._lock = threading.RLock()

    @classmethod
    def open(cls, directory: Path, *, now_ms: int) -> "EmbeddedStore":
        """Open the store of a log directory, which must exist; create it if there is none.

        The caller holds the directory's lock, so no other process has the file open. Raises
        CoordinationError, in one line, where the file is damaged or cannot be read or written.
        """
        path = directory / FILE_NAME
        try:
            tree = journal_file.read(path)
            _end_sessions(tree, now_ms)
            reserve = _Reserve(directory / RESERVE_NAME)
            try:
                descriptor = journal_file.replace(path, tree)
            except OSError as error:
                if error.errno not in _NO_ROOM or not reserve.give_up():
                    raise
                descriptor = journal_file.replace(path, tree)
            reserve.restore(os.fstat(descriptor).st_size)
        except journal.DamagedJournalError as error:
            raise CoordinationError(
                f"{path} is damaged ({error}); restore it from a copy, or move it away to have "
                "topics taken from the directories on disk, without their configuration"
            ) from error
        except OSError as error:
            raise CoordinationError(f"{path}: {error.strerror}") from error
        return cls(path, tree, descriptor, reserve)

    def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Data and stat of a znode. Raises NoNodeError."""
        with self._lock:
            return self._tree.get(path)

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes | None, Stat] | None]:
        """Data and stat of each znode, None for those that do not exist."""
        with self._lock:
            return [self.get(path) if self.exists(path) is not None else None for path in paths]

    def exists(self, path: str) -> Stat | None:
        """The stat of a znode, None if there is none."""
        with self._lock:
            return self._tree.exists(path)

    def children(self, path: str) -> list[str]:
        """Names of the children, sorted. Raises NoNodeError."""
        with self._lock:
            return self._tree.children(path)

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Names of the children of each znode, sorted; None for those that do not exist."""
        with self._lock:
            tree = self._tree
            return [None if tree.exists(it) is None else tree.children(it) for it in paths]

    def commit(self, operations: Sequence[Operation], *, now_ms: int) -> Committed:
        """Apply all operations or none; on return they are on disk.

        Raises ZooKeeperError where one is refused. Raises CoordinationError where the disk fails;
        it is unknown then whether the line will be read again, so the store takes no more writes.
        A full disk is no failure: what was written of the line is cut off, and nothing happened.
        """
        with self._lock:
            return self._commit(operations, now_ms)

    def _commit(self, operations: Sequence[Operation], now_ms: int) -> Committed:
        if self._broken is not None:
            raise CoordinationError(self._broken)
        committed = self._tree.commit(operations, now_ms=now_ms)
        line = journal.encode_transaction(operations, zxid=committed.zxid, now_ms=now_ms)
        try:
            if not self._has_room_for(line):
                reason = os.strerror(errno.ENOSPC)
                raise CoordinationError(f"{self._path} cannot be written: {reason}")
            os.fdatasync(self._descriptor)
        except OSError as error:
            self._broken = f"{self._path} cannot be written: {error.strerror}"
            raise CoordinationError(self._broken) from error
        return committed

    def _has_room_for(self, line: bytes) -> bool:
        """Write a line, or find the disk full and be as before it. Raises OSError."""
        end = os.fstat(self._descriptor).st_size
        try:
            journal_file.write(self._descriptor, line)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            if not _cut(self._descriptor, end):
                raise
            if self._reserve.give_up():
                return self._has_room_for(line)
            self._tree = journal_file.read_again(self._descriptor, self._path)
            return False
        self._reserve.restore(end)
        return True

    def subscribe(self, subscriber: Subscriber) -> None:
        """No other broker writes here, so there is nothing to notify of."""

    def watch(self, path: str, kind: Watch) -> None:
        """No other broker writes here, so there is nothing to watch for."""

    def watch_many(self, paths: Sequence[str], kind: Watch) -> None:
        """As `watch`."""

    def wait_until_gone(self, path: str) -> bool:
        """Sessions end when the file is opened, so there is nothing to wait for."""
        return self.exists(path) is None

    def close(self) -> None:
        """Close the file; the session's znodes are deleted when it is next opened."""
        os.close(self._descriptor)
        self._broken = f"{self._path} is closed"


def _cut(descriptor: int, size: int) -> bool:
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        return False
    return True


class _Reserve:
    """A file of nothing, given up when the disk is full: a start writes here, and a topic's end.

    It holds twice what a snapshot of the tree takes, and has its room back as soon as there is any.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = path.exists()

    def give_up(self) -> bool:
        """Make room; False where there was none to give."""
        held, self._held = self._held, False
        if held:
            _log.warning("Disk full: using the reserve of %s", self._path.parent)
            self._path.unlink(missing_ok=True)
        return held

    def restore(self, journal_size: int) -> None:
        """Hold the reserve again, if it was given up and there is room.

        Never an error: what was committed stays so, and it is tried again after the next commit.
        """
        if self._held:
            return
        size = max(RESERVE_LEAST, 2 * journal_size)
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            _log.warning(
                "Failed to lock the coordination data again: %s %s", self._path, error.strerror
            )
            return
        try:
            os.posix_fallocate(descriptor, 0, size)
            self._held = True
        except OSError:
            with suppress(OSError):
                self._path.unlink()
        finally:
            os.close(descriptor)


def _end_sessions(tree: Tree, now_ms: int) -> None:
    # Ephemeral znodes have no children, so the order of deletion does not matter.
    gone = [Delete(path) for session in tree.sessions() for path in tree.ephemerals(session)]
    if gone:
        try:
            tree.commit(gone, now_ms=now_ms)
        except ZooKeeperError as error:
            raise AssertionError(violated("the tree deletes what it lists")) from error
