"""How far loading and recovering the logs has come, for the log, `/recovery` and `/live`.

The names are those of Kafka's LogManager (KIP-831: remainingLogsToRecover,
remainingSegmentsToRecover). Written by the threads that load, read by any other.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from barnabas_broker.log.files import list_directory
from barnabas_broker.log.names import LOG, offset_of
from barnabas_broker.log.parallel import GivenUpError

_log = logging.getLogger(__name__)

PROGRESS_INTERVAL_S: Final = 5.0
"""A log line per directory at most this often."""


SCAN_STEP_BYTES: Final = 1 << 20
"""How many bytes of a segment are scanned between two notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryWork:
    """Segments that reach past the recovery point of their log."""

    segments: int = 0
    size_bytes: int = 0

    @classmethod
    def of_log(cls, directory: Path, recovery_point: int) -> RecoveryWork:
        """What an unclean start scans of a log, by the names and sizes of its files.

        Raises OSError.
        """
        found = list_directory(directory)[0]
        bases = sorted(
            offset
            for name in found
            if name.endswith(LOG) and (offset := offset_of(name)) is not None
        )
        first = max(bisect_right(bases, recovery_point) - 1, 0)
        sizes = [(directory / f"{base:020d}{LOG}").stat().st_size for base in bases[first:]]
        return cls(segments=len(sizes), size_bytes=sum(sizes))

    def __add__(self, other: RecoveryWork) -> RecoveryWork:
        return RecoveryWork(
            segments=self.segments + other.segments, size_bytes=self.size_bytes + other.size_bytes
        )


class DirectoryProgress:
    """One log directory. `scanned` and `step` are called by the threads that load its logs."""

    __slots__ = (
        "_began_s",
        "_clock_s",
        "_given_up",
        "_lock",
        "_spoke_s",
        "clean",
        "logs",
        "logs_done",
        "moved_s",
        "path",
        "segments",
        "segments_done",
        "size_bytes",
        "size_bytes_done",
    )

    def __init__(
        self,
        path: Path,
        *,
        clean: bool,
        logs: int,
        work: RecoveryWork,
        clock_s: Callable[[], float],
        given_up: threading.Event,
    ) -> None:
        self.path = path
        self.clean = clean
        self.logs = logs
        self.logs_done = 0
        #: to be scanned, according to the recovery points
        self.segments = work.segments
        self.segments_done = 0
        self.size_bytes = work.size_bytes
        self.size_bytes_done = 0
        self._clock_s = clock_s
        self._given_up = given_up
        #: when anything was done last, by that clock
        self.moved_s = self._began_s = self._spoke_s = clock_s()
        self._lock = threading.Lock()

    def announce(self) -> None:
        """Say, as Kafka's LogManager does, whether the logs are recovered."""
        if not self.clean:
            _log.info(
                "Attempting recovery for all %d logs in %s since no clean shutdown file was found: "
                "%d unflushed segments, %d bytes to scan",
                self.logs, self.path, self.segments, self.size_bytes,
            )  # fmt: skip
        elif self.logs:
            _log.info(
                "Skipping recovery of %d logs from %s since clean shutdown file was found",
                self.logs, self.path,
            )  # fmt: skip

    def scanned(self, size_bytes: int, *, segments: int = 0) -> None:
        """Bytes of a segment were scanned; `segments` is 1 with its last bytes.

        Raises GivenUpError where the broker is stopping: a segment may take minutes.
        """
        if self._given_up.is_set():
            raise GivenUpError
        with self._lock:
            self.size_bytes_done += size_bytes
            self.segments_done += segments
            # More than was foreseen where an index is missing, or a clean-shutdown marker stale.
            self.size_bytes = max(self.size_bytes, self.size_bytes_done)
            self.segments = max(self.segments, self.segments_done)
            line = self._moved()
        if line is not None:
            _log.info("%s", line)

    def step(self, _now_s: float = 0.0) -> str | None:
        """A log was loaded; returns a line for the log when one is due."""
        with self._lock:
            self.logs_done += 1
            return self._moved()

    @property
    def left_s(self) -> float | None:
        """An estimate of what remains, by bytes where some are scanned; None before any is."""
        passed_s = self._clock_s() - self._began_s
        if self.size_bytes_done:
            return passed_s / self.size_bytes_done * (self.size_bytes - self.size_bytes_done)
        if self.logs_done and not self.size_bytes:
            return passed_s / self.logs_done * (self.logs - self.logs_done)
        return None

    def _moved(self) -> str | None:
        self.moved_s = now_s = self._clock_s()
        if now_s - self._spoke_s < PROGRESS_INTERVAL_S or self.logs_done == self.logs:
            return None
        self._spoke_s = now_s
        return self.describe()

    def describe(self) -> str:
        """One line: what is done of how much, and how long the rest may take."""
        left_s = self.left_s
        verb = "Loading" if self.clean else "Recovering"
        parts = [
            f"{verb} {self.logs_done:,}/{self.logs:,} logs in {self.path}",
        ]
        if self.size_bytes:
            parts.append(
                f"{self.segments_done:,}/{self.segments:,} unflushed segments, "
                f"{self.size_bytes_done >> 20:,}/{self.size_bytes >> 20:,} MiB scanned"
            )
        if left_s is not None:
            parts.append(f"about {left_s:.0f} s left")
        return "; ".join(parts)

    def as_json(self) -> dict[str, object]:
        """For `/recovery`."""
        left_s = self.left_s
        return {
            "directory": str(self.path),
            "cleanShutdown": self.clean,
            "logs": self.logs,
            "remainingLogsToRecover": self.logs - self.logs_done,
            "segments": self.segments,
            "remainingSegmentsToRecover": self.segments - self.segments_done,
            "bytes": self.size_bytes,
            "remainingBytesToRecover": self.size_bytes - self.size_bytes_done,
            "estimatedRemainingSeconds": None if left_s is None else round(left_s, 1),
        }


class SegmentScan:
    """Notes how far the scan of one segment has come, a MiB at a time."""

    __slots__ = ("_noted", "_position", "_progress")

    def __init__(self, progress: DirectoryProgress | None) -> None:
        self._progress = progress
        self._noted = self._position = 0

    def __enter__(self) -> Self:
        return self

    def advance(self, position: int) -> None:
        """All before `position` has been scanned."""
        self._position = position
        if position - self._noted >= SCAN_STEP_BYTES and self._progress is not None:
            self._progress.scanned(position - self._noted)
            self._noted = position

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._progress is not None and kind is None:
            self._progress.scanned(self._position - self._noted, segments=1)


class RecoveryProgress:
    """All log directories; they are loaded one after the other."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._began_s = clock_s()
        #: set where the broker is stopping
        self.given_up = threading.Event()
        #: in the order in which they are loaded
        self.directories: tuple[DirectoryProgress, ...] = ()

    def begin(self, path: Path, *, clean: bool, logs: int, work: RecoveryWork) -> DirectoryProgress:
        """A directory is about to be loaded."""
        if not self.directories:
            self._began_s = self._clock_s()
        directory = DirectoryProgress(
            path,
            clean=clean,
            logs=logs,
            work=work,
            clock_s=self._clock_s,
            given_up=self.given_up,
        )
        self.directories = (*self.directories, directory)
        directory.announce()
        return directory

    def finish(self, logs: int) -> None:
        """All that could be loaded has been."""
        _log.info("Loaded %d logs in %.0f ms", logs, (self._clock_s() - self._began_s) * 1000)

    @property
    def idle_s(self) -> float:
        """How long nothing has been done."""
        moved_s = max((self._began_s, *(each.moved_s for each in self.directories)))
        return self._clock_s() - moved_s

    def describe(self) -> str:
        """One line about the directory that is being loaded."""
        return self.directories[-1].describe() if self.directories else "Loading logs"

    def as_json(self) -> dict[str, object]:
        """For `/recovery`."""
        left = [each.left_s for each in self.directories]
        known = [each for each in left if each is not None]
        return {
            "currentDirectory": str(self.directories[-1].path) if self.directories else None,
            "logs": sum(each.logs for each in self.directories),
            "remainingLogsToRecover": sum(each.logs - each.logs_done for each in self.directories),
            "segments": sum(each.segments for each in self.directories),
            "remainingSegmentsToRecover": sum(
                each.segments - each.segments_done for each in self.directories
            ),
            "bytes": sum(each.size_bytes for each in self.directories),
            "remainingBytesToRecover": sum(
                each.size_bytes - each.size_bytes_done for each in self.directories
            ),
            "estimatedRemainingSeconds": round(sum(known), 1) if len(known) == len(left) else None,
            "secondsSinceProgress": round(self.idle_s, 1),
            "directories": [each.as_json() for each in self.directories],
        }
