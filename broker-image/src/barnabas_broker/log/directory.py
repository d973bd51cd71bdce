"""One log directory: its lock, its owner, its checkpoints and its clean-shutdown marker."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from barnabas_broker.log import checkpoints, meta_properties, names
from barnabas_broker.log.checkpoints import MalformedCheckpointError
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directory_lock import AlreadyLockedError, DirectoryLock
from barnabas_broker.log.files import (
    list_directory,
    make_directory,
    read_file,
    remove_file,
    rename,
    replace_file,
    sync_directory,
)
from barnabas_broker.log.health import DirectoryHealth, Reserve, StorageError, lacks_means
from barnabas_broker.log.loader import Checkpointed
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.recovery_progress import (
    DirectoryProgress,
    RecoveryProgress,
    RecoveryWork,
)
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


class LogDirectoryError(Exception):
    """A log directory that cannot be used; the message is one line for the operator."""


def refuse_without_means(path: Path, error: OSError) -> None:
    """Raise LogDirectoryError where a start failed for want of descriptors or memory.

    The disk has not failed: to go on without it would leave its partitions to other brokers.
    """
    if lacks_means(error):
        reason = error.strerror or str(error)
        raise LogDirectoryError(
            f"{path} cannot be opened, the disk is not why: {reason}"
        ) from error


class Checkpoint(NamedTuple):
    """The contents of the checkpoint files, by name; of two the one with the higher number."""

    number: int
    files: dict[str, bytes]
    partitions: frozenset[TopicPartition]


class VolumeUsage(NamedTuple):
    """Bytes of a volume."""

    total_bytes: int
    usable_bytes: int


class DirectoryState:
    """A directory this broker has locked and may write to."""

    __slots__ = (
        "_asked",
        "_capture_lock",
        "_checkpoint_lock",
        "_cleaned",
        "_marks",
        "_meta",
        "_set_aside",
        "_written",
        "checkpointed",
        "clean",
        "cleaned",
        "cuts",
        "health",
        "high_watermarks",
        "lock",
        "log_starts",
        "path",
        "recovery_points",
        "refused",
    )

    def __init__(self, path: Path, lock: DirectoryLock) -> None:
        self.path = path
        self.lock = lock
        self.health = DirectoryHealth(path)
        self._meta: bytes | None = None
        self._capture_lock = threading.Lock()  # Held for no I/O, unlike the other.
        self._checkpoint_lock = threading.Lock()
        #: numbers of the newest checkpoint made and of the newest written
        self._asked = self._written = 0
        #: the high watermarks that were written last
        self._marks = b""
        #: what the cleaner's file says, which seldom changes
        self._cleaned = checkpoints.format_offsets({})
        #: partitions that the checkpoint files may speak of, whether they are here or not
        self.checkpointed: set[TopicPartition] = set()
        #: left by a clean shutdown, or new
        self.clean = False
        #: where the marker is that this start consumed
        self._set_aside: Path | None = None
        #: whether this is why the start is refused, though the disk has not failed
        self.refused = False
        #: the broker epoch the marker of that shutdown names
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_starts: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        #: up to where compaction has come
        self.cleaned: dict[TopicPartition, int] = {}
        #: logs that are being cut, with the offset that nothing may be said to be above
        self.cuts: dict[TopicPartition, int] = {}

    @classmethod
    def take(cls, path: Path) -> DirectoryState:
        """Create and lock a directory. Raises OSError; LogDirectoryError for one that is locked."""
        make_directory(path)
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
            state._meta = read_file(meta) if meta.exists() else None
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
        """Mark a checked directory as ours, remove the clean shutdown file, read checkpoints.

        Raises OSError.
        """
        if meta is not None:
            replace_file(self.path / names.META_PROPERTIES, meta)
        self._consume_marker()
        self.recovery_points = self._read_offsets(names.RECOVERY_POINT_CHECKPOINT)
        self.log_starts = self._read_offsets(names.LOG_START_OFFSET_CHECKPOINT)
        self.high_watermarks = self._read_offsets(names.HIGH_WATERMARK_CHECKPOINT)
        self.checkpointed = {
            *self.recovery_points,
            *self.log_starts,
            *self.high_watermarks,
            *self.cleaned,
        }
        self.cleaned = self._read_offsets(names.CLEANER_OFFSET_CHECKPOINT)
        self._cleaned = checkpoints.format_offsets(self.cleaned)

    def _consume_marker(self) -> None:
        path = self.path / names.CLEAN_SHUTDOWN
        consumed = self.path / names.CLEAN_SHUTDOWN_CONSUMED
        try:
            rename(path, consumed)
        except FileNotFoundError:
            self.clean = not any(self.partition_paths())
            return
        self._set_aside = consumed
        sync_directory(self.path)
        self.clean = True

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoints.parse_offsets(read_file(self.path / name))
        except FileNotFoundError:
            return {}
        except MalformedCheckpointError as error:
            # Every checkpoint only saves work: without it more of the log is scanned.
            _log.warning("ignoring %s: %s", self.path / name, error)
            return {}

    def partition_paths(self) -> list[Path]:
        return [self.path / name for name in list_directory(self.path)[1]]

    def forget(self, tp: TopicPartition) -> None:
        """Ignore what the checkpoints say of a partition: they describe another copy of it."""
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks, self.cleaned):
            offsets.pop(tp, None)

    def begin_loading(
        self, progress: RecoveryProgress, found: Sequence[tuple[TopicPartition, Path]]
    ) -> DirectoryProgress:
        """Announce how much of the logs found this start scans. Raises OSError."""
        work = RecoveryWork()
        if not self.clean:
            points = self.recovery_points
            logs = (RecoveryWork.of_log(path, points.get(tp, 0)) for tp, path in found)
            work = sum(logs, work)
        return progress.begin(self.path, clean=self.clean, logs=len(found), work=work)

    def load(
        self,
        tp: TopicPartition,
        path: Path,
        config: LogConfig,
        now_ms: int,
        progress: DirectoryProgress | None = None,
    ) -> PartitionLog:
        """Open a partition found here. Raises OSError for the device, else LogDirectoryError."""
        known = Checkpointed(
            clean=self.clean,
            recovery_point=self.recovery_points.get(tp, 0),
            log_start_offset=self.log_starts.get(tp, 0),
            clean_end=self.recovery_points.get(tp),
            cleaned_to=self.cleaned.get(tp, 0),
        )
        try:
            log = PartitionLog.open(
                path, tp, config, known, now_ms=now_ms, health=self.health, progress=progress
            )
        except KafkaError as error:
            raise LogDirectoryError(f"cannot load {path}: {error}") from error
        log.advance_high_watermark(self.high_watermarks.get(tp, 0))
        log.cleaned_to = self.cleaned.get(tp)
        return log

    # --- checkpoints -------------------------------------------------------------------------

    def checkpoint(self, logs: Iterable[PartitionLog]) -> Checkpoint:
        """The contents that the checkpoint files should have for ``logs`` now.

        Numbered, so that the later of two wins: both are made under a lock. For a log in `cuts`
        they claim no more than is true after its truncation.
        """
        with self._capture_lock:
            return self._capture(logs)

    def _capture(self, logs: Iterable[PartitionLog]) -> Checkpoint:
        # A log that is being cut in a thread may have no segments by the next line.
        first = {log: segments[0] for log in logs if (segments := log.segments)}
        live = list(first)
        points = {log.tp: log.recovery_point for log in live}
        starts = {
            log.tp: log.log_start_offset
            for log in live
            if log.log_start_offset > first[log].base_offset
        }
        marks = {log.tp: log.high_watermark for log in live}
        cleaned = {log.tp: log.cleaned_to for log in live if log.cleaned_to is not None}
        for offsets in (points, starts, marks, cleaned):
            self._lower(offsets)
        partitions = frozenset(points.keys() | starts.keys() | marks.keys())
        self.checkpointed |= partitions
        self._asked += 1
        return Checkpoint(
            self._asked,
            {
                names.RECOVERY_POINT_CHECKPOINT: checkpoints.format_offsets(points),
                names.LOG_START_OFFSET_CHECKPOINT: checkpoints.format_offsets(starts),
                names.CLEANER_OFFSET_CHECKPOINT: checkpoints.format_offsets(cleaned),
                names.HIGH_WATERMARK_CHECKPOINT: checkpoints.format_offsets(marks),
            },
            partitions,
        )

    def _lower(self, offsets: dict[TopicPartition, int]) -> None:
        for tp, offset in list(self.cuts.items()):
            if offsets.get(tp, offset) > offset:
                offsets[tp] = offset

    def write(self, checkpoint: Checkpoint) -> bool:
        """Write the files, unless newer ones have been written. Blocks; safe in any thread.

        False when that failed, with the older files still there; the error is reported to the
        health of the directory.
        """
        if not self.health.readable:
            return False
        try:
            self._write(checkpoint)
        except OSError as error:
            self.health.failed(error)
            if self.health.writable:
                _log.warning(
                    "Failed to write a checkpoint: log.dir=%s %s",
                    self.path,
                    error.strerror or error,
                )
            return False
        return True

    def _write(self, checkpoint: Checkpoint) -> None:
        with self._checkpoint_lock:
            if checkpoint.number <= self._written:
                return
            # Each replacement syncs the directory, so creations and deletions of partitions too.
            for name, content in checkpoint.files.items():
                if name == names.CLEANER_OFFSET_CHECKPOINT and content == self._cleaned:
                    continue
                replace_file(self.path / name, content)
            self._cleaned = checkpoint.files[names.CLEANER_OFFSET_CHECKPOINT]
            self._marks = checkpoint.files[names.HIGH_WATERMARK_CHECKPOINT]
            self._written = checkpoint.number
        with self._capture_lock:
            if checkpoint.number == self._asked:  # Else a newer one is on its way.
                self.checkpointed = set(checkpoint.partitions)

    def write_for(self, logs: Iterable[PartitionLog], *, surely: bool = True) -> None:
        """Write the files for an operation that depends on their contents.

        Raises StorageError when that failed; if not `surely`, the failure is only reported to the
        health of the directory, as by `write`.
        """
        if not self.write(self.checkpoint(logs)) and surely:
            raise StorageError(self.path, "its checkpoints cannot be written")

    @contextmanager
    def lowered(
        self, log: PartitionLog, offset: int, logs: Iterable[PartitionLog]
    ) -> Iterator[None]:
        """Lower the checkpointed offsets of ``log``, one of ``logs``, while it is truncated.

        They stay lowered if the truncation fails half-way. Raises StorageError, with nothing
        truncated.
        """
        before = self.cuts.get(log.tp)
        self.cuts[log.tp] = offset if before is None else min(before, offset)
        said = (log.recovery_point, log.high_watermark, log.log_start_offset, log.cleaned_to or 0)
        if offset < max(said):
            try:
                self.write_for(logs)
            except StorageError:
                if before is None:
                    self.cuts.pop(log.tp, None)
                raise
        yield
        self.cuts.pop(log.tp, None)

    def write_marks(self, marks: Mapping[TopicPartition, int]) -> None:
        """Write the high watermarks alone, if they have changed. Blocks; safe in any thread.

        The marks only save work at the next start: they need not agree with the other files.
        """
        lowered = dict(marks)
        self._lower(lowered)
        content = checkpoints.format_offsets(lowered)
        with self._checkpoint_lock:
            if content == self._marks or not self.health.readable:
                return
            try:
                replace_file(self.path / names.HIGH_WATERMARK_CHECKPOINT, content)
            except OSError as error:
                self.health.failed(error)
            else:
                self._marks = content

    def probe(self, reserve: Reserve) -> None:
        """Hold the free room of its volume against the reserve. Blocks; safe in any thread."""
        try:
            free_bytes = shutil.disk_usage(self.path).free
        except OSError as error:
            self.health.failed(error)
            return
        finding = reserve.judge(free_bytes)
        if finding is not None:
            self.health.found(finding, f"{free_bytes} bytes are free")

    def refuse_without_means(self, error: OSError) -> None:
        """As the function, once the directory is ours."""
        self.refused = lacks_means(error)
        refuse_without_means(self.path, error)

    def restore_marker(self) -> None:
        """Restore the clean shutdown file after a start that was refused before it wrote.

        Else the next start would see an unclean shutdown. Takes no descriptor, for there may be
        none.
        """
        if self._set_aside is not None:
            try:
                rename(self._set_aside, self.path / names.CLEAN_SHUTDOWN)
            except OSError as error:
                _log.error(
                    "Failed to write the clean shutdown file: log.dir=%s %s", self.path, error
                )

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the clean shutdown file, the last write to a directory."""
        marker = self.path / names.CLEAN_SHUTDOWN
        try:
            replace_file(marker, checkpoints.format_clean_shutdown(broker_epoch))
            if self._set_aside is not None:
                remove_file(self._set_aside)
        except OSError as error:
            _log.error("Failed to write the clean shutdown file: log.dir=%s %s", self.path, error)
