"""Whether a log directory can be used: a small table, and what decides its next state.

=======  ========================================  ================================================
state    action                                    transition
=======  ========================================  ================================================
ONLINE   reads and writes                          FULL when a write finds no room, or the probe
                                                   less than the reserve; OFFLINE at any other I/O
                                                   error
FULL     reads; refuses clients, tries the writes  ONLINE when the probe finds room to resume;
         of coordinators, which the reserve is      OFFLINE at an I/O error that is not about room
         for; retains and deletes, and so can
         heal itself
OFFLINE  nothing: what a device that failed once   none until the next start
         holds is not known
=======  ========================================  ================================================

Room to resume is more than the reserve, so that a directory does not flap. After a failed fsync a
directory is OFFLINE whatever the reason was: the pages may be gone, and the next fsync would say
that all is well. (Apache Kafka's LogDirFailureChannel knows OFFLINE only, for a full disk too.)
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from barnabas_broker.log.files import SyncError
from barnabas_kafka.errors import ErrorCode, KafkaError

_log = logging.getLogger(__name__)

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
#: What this process lacks; it says nothing about the device.
_NO_MEANS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class StorageError(KafkaError):
    """The directory of a partition's log cannot be read or written; its health says more."""

    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory}: {reason}")
        self.directory = directory


class Health(Enum):
    """See the table of the module."""

    ONLINE = "online"
    FULL = "full"
    OFFLINE = "offline"


class Finding(Enum):
    """What was found out about a directory."""

    NO_ROOM = "no room for a write"
    LOW = "less room than the reserve"
    ROOM = "room to resume"
    BROKEN = "an I/O error"


_NEXT = {
    (Health.ONLINE, Finding.NO_ROOM): Health.FULL,
    (Health.ONLINE, Finding.LOW): Health.FULL,
    (Health.FULL, Finding.ROOM): Health.ONLINE,
    (Health.ONLINE, Finding.BROKEN): Health.OFFLINE,
    (Health.FULL, Finding.BROKEN): Health.OFFLINE,
}


class Reserve(NamedTuple):
    """Free bytes of a volume: below ``keep`` a directory is full, from ``resume`` on it is not."""

    keep: int
    resume: int

    def judge(self, free_bytes: int) -> Finding | None:
        """What so many free bytes mean; None between the two marks."""
        if free_bytes < self.keep:
            return Finding.LOW
        if free_bytes >= max(self.resume, self.keep, 1):
            return Finding.ROOM
        return None


def lacks_room(error: OSError) -> bool:
    """Whether a write failed because the disk or a quota is full, and nothing else is wrong."""
    return error.errno in _NO_ROOM and not isinstance(error, SyncError)


def lacks_means(error: OSError) -> bool:
    """Whether a file failed for want of what the process or the system had no more of."""
    return error.errno in _NO_MEANS and not isinstance(error, SyncError)


def judge_error(error: OSError) -> Finding | None:
    """What an error of a file of the directory means; None when it is not the directory's."""
    if isinstance(error, SyncError):
        return Finding.BROKEN
    if error.errno in _NO_ROOM:
        return Finding.NO_ROOM
    return None if lacks_means(error) else Finding.BROKEN


class DirectoryHealth:
    """The health of one log directory, shared by everything that lies in it.

    ``writable`` and ``readable`` are plain attributes: every produce and fetch reads them. Any
    thread may report findings; ``on_change`` is then called in that thread.
    """

    __slots__ = ("on_change", "path", "readable", "reason", "state", "writable")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = Health.ONLINE
        self.readable = self.writable = True
        #: why it is not ONLINE
        self.reason = ""
        self.on_change: Callable[[DirectoryHealth], None] | None = None

    @classmethod
    def gone(cls, path: Path, reason: str) -> DirectoryHealth:
        """Of what is not there any more, or never was."""
        health = cls(path)
        health.state, health.reason = Health.OFFLINE, reason
        health.readable = health.writable = False
        return health

    def failed(self, error: OSError) -> None:
        """Take note of an error of one of the directory's files."""
        finding = judge_error(error)
        if finding is not None:
            self.found(finding, error.strerror or str(error))

    def found(self, finding: Finding, reason: str) -> None:
        """Go where the table says; every change of state is logged once."""
        following = _NEXT.get((self.state, finding), self.state)
        if following is self.state:
            return
        self.state = following
        self.readable = following is not Health.OFFLINE
        self.writable = following is Health.ONLINE
        self.reason = "" if self.writable else reason
        _SAY[following](self.path, reason)
        if self.on_change is not None:
            self.on_change(self)


def _say_online(path: Path, reason: str) -> None:
    _log.info("Log directory writable again: log.dir=%s %s", path, reason)


def _say_full(path: Path, reason: str) -> None:
    _log.error(
        "Log directory full: log.dir=%s (%s); produce requests are rejected until there is "
            "space, fetches are served",
        path, reason,
    )  # fmt: skip


def _say_offline(path: Path, reason: str) -> None:
    _log.error(
        "Log directory failed: log.dir=%s %s; repair the disk and restart the broker", path, reason
    )


_SAY = {Health.ONLINE: _say_online, Health.FULL: _say_full, Health.OFFLINE: _say_offline}
