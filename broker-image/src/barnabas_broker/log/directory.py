"""One log directory: its lock, its owner, its checkpoints and its clean-shutdown marker."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from barnabas_broker.log import checkpoints, meta_properties, names
from barnabas_broker.log.checkpoints import MalformedCheckpointError
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directory_lock import AlreadyLockedError, DirectoryLock
from barnabas_broker.log.files import replace_file, sync_directory
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


class LogDirectoryError(Exception):
    """A log directory that cannot be used; the message is one line for the operator."""


class DirectoryState:
    """A directory this broker has locked and may write to."""

    __slots__ = (
        "_meta",
        "broker_epoch",
        "clean",
        "high_watermarks",
        "lock",
        "log_starts",
        "path",
        "recovery_points",
    )

    def __init__(self, path: Path, lock: DirectoryLock) -> None:
        self.path = path
        self.lock = lock
        self._meta: bytes | None = None
        #: left by a clean shutdown, or new
        self.clean = False
        #: the broker epoch the marker of that shutdown names
        self.broker_epoch = -1
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_starts: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}

    @classmethod
    def take(cls, path: Path) -> DirectoryState:
        """Create and lock a directory. Raises OSError; LogDirectoryError for one that is locked."""
        path.mkdir(parents=True, exist_ok=True)
        try:
            lock = DirectoryLock(path)
        except AlreadyLockedError:
            raise LogDirectoryError(
                f"log directory {path} is in use: another broker holds the lock on "
                f"{path / names.LOCK}"
            ) from None
        state = cls(path, lock)
        try:
            meta = path / names.META_PROPERTIES
            state._meta = meta.read_bytes() if meta.exists() else None
        except BaseException:
            lock.release()
            raise
        return state

    @property
    def stored_broker_id(self) -> int | None:
        """The broker id in meta.properties, None without one."""
        return None if self._meta is None else meta_properties.stored_broker_id(self._meta)

    @property
    def stored_cluster_id(self) -> str | None:
        """The cluster id in meta.properties, None without one."""
        return None if self._meta is None else meta_properties.stored_cluster_id(self._meta)

    def check_owner(self, *, broker_id: int, cluster_id: str) -> bytes | None:
        """The meta.properties to write, None if it is right already; nothing is touched.

        Raises LogDirectoryError for another's directory.
        """
        try:
            return meta_properties.check(self._meta, broker_id=broker_id, cluster_id=cluster_id)
        except meta_properties.WrongOwnerError as error:
            raise LogDirectoryError(f"log directory {self.path} cannot be used: {error}") from error

    def settle(self, meta: bytes | None) -> None:
        """Make a checked directory ours, consume the clean-shutdown marker, read the checkpoints.

        Raises OSError.
        """
        if meta is not None:
            replace_file(self.path / names.META_PROPERTIES, meta)
        self._consume_marker()
        self.recovery_points = self._read_offsets(names.RECOVERY_POINT_CHECKPOINT)
        self.log_starts = self._read_offsets(names.LOG_START_OFFSET_CHECKPOINT)
        self.high_watermarks = self._read_offsets(names.HIGH_WATERMARK_CHECKPOINT)

    def _consume_marker(self) -> None:
        path = self.path / names.CLEAN_SHUTDOWN
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            self.clean = not any(self.partition_paths())
            return
        path.unlink()
        sync_directory(self.path)
        self.clean = True
        self.broker_epoch = checkpoints.parse_clean_shutdown(content)

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoints.parse_offsets((self.path / name).read_bytes())
        except FileNotFoundError:
            return {}
        except MalformedCheckpointError as error:
            # Every checkpoint only saves work: without it more of the log is looked at.
            _log.warning("ignoring %s: %s", self.path / name, error)
            return {}

    def partition_paths(self) -> list[Path]:
        return sorted(path for path in self.path.iterdir() if path.is_dir())

    def load(self, tp: TopicPartition, path: Path, config: LogConfig, now_ms: int) -> PartitionLog:
        """Open a partition found here. Raises LogDirectoryError."""
        try:
            log = PartitionLog.open(
                path,
                tp,
                config,
                clean=self.clean,
                recovery_point=self.recovery_points.get(tp, 0),
                log_start_offset=self.log_starts.get(tp, 0),
                now_ms=now_ms,
            )
        except OSError as error:
            raise LogDirectoryError(f"cannot load {path}: {error.strerror or error}") from error
        except KafkaError as error:
            raise LogDirectoryError(f"cannot load {path}: {error}") from error
        log.advance_high_watermark(self.high_watermarks.get(tp, 0))
        return log

    # --- checkpoints -------------------------------------------------------------------------

    def checkpoints(self, logs: Iterable[PartitionLog]) -> tuple[bytes, bytes, bytes]:
        """The contents of the checkpoint files: recovery points, starts, high watermarks."""
        live = [log for log in logs if log.segments]
        points = {log.tp: log.recovery_point for log in live}
        starts = {
            log.tp: log.log_start_offset
            for log in live
            if log.log_start_offset > log.segments[0].base_offset
        }
        marks = {log.tp: log.high_watermark for log in live}
        return (
            checkpoints.format_offsets(points),
            checkpoints.format_offsets(starts),
            checkpoints.format_offsets(marks),
        )

    def write_checkpoints(self, points: bytes, starts: bytes, marks: bytes) -> None:
        """Write the files. Blocks; touches nothing of the state."""
        replace_file(self.path / names.RECOVERY_POINT_CHECKPOINT, points)
        replace_file(self.path / names.LOG_START_OFFSET_CHECKPOINT, starts)
        # Each replacement syncs the directory, so creations and deletions of partitions too.
        replace_file(self.path / names.HIGH_WATERMARK_CHECKPOINT, marks)

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the marker: the very last thing that happens to a directory."""
        marker = self.path / names.CLEAN_SHUTDOWN
        replace_file(marker, checkpoints.format_clean_shutdown(broker_epoch))
