"""All log directories of a broker: opening, loading, placing, checkpoints, clean shutdown.

A directory is taken in this order, each step safe to be killed in: lock; meta.properties; consume
the clean-shutdown marker (removed before anything is loaded, so that a crash while loading counts
as unclean: KAFKA-10471); load the partitions; and, on the way out, close the logs, write the
checkpoints, and put the marker back last of all.

What may block for long is handed out as callables: ``checkpoint_work`` and the ``run`` argument
of ``housekeeping`` let the event loop give them to a thread.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

from barnabas_broker.log import names
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directory import DirectoryState, LogDirectoryError
from barnabas_broker.log.files import remove_files
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)

__all__ = ["DirectoryUsage", "LogDirectories", "LogDirectoryError"]

Work = Callable[[], None]


def _at_once(work: Work) -> None:
    work()


@dataclass(frozen=True, slots=True)
class DirectoryUsage:
    """A log directory for DescribeLogDirs: bytes per partition, and of the volume."""

    directory: Path
    sizes: dict[TopicPartition, int]
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class _Removal:
    """Files or a directory to remove once ``due_ms`` has come."""

    due_ms: int
    work: Work


class LogDirectories:
    """The partitions of a broker and where they lie; in the order `take`, `claim`, `load`."""

    def __init__(
        self,
        directories: list[DirectoryState],
        offline: dict[Path, str],
    ) -> None:
        self._directories = directories
        self._home: dict[TopicPartition, DirectoryState] = {}
        self._removals: list[_Removal] = []
        self.logs: dict[TopicPartition, PartitionLog] = {}
        #: directories that could not be used, with the reason
        self.offline = offline

    @classmethod
    def take(cls, dirs: Sequence[str | Path]) -> LogDirectories:
        """Lock every directory, nothing read but whose it is; missing ones are created.

        Then `claim` them and `load` what they hold. A directory that fails with an I/O error is
        left offline as long as another one works. Raises LogDirectoryError, with one clear line,
        when none does, and for a directory that is locked.
        """
        taken: list[DirectoryState] = []
        offline: dict[Path, str] = {}
        try:
            for path in dict.fromkeys(Path(name) for name in dirs):
                try:
                    taken.append(DirectoryState.take(path))
                except OSError as error:
                    offline[path] = f"{error.strerror or error}"
                    _log.error("log directory %s is offline: %s", path, offline[path])
            if not taken:
                reasons = "; ".join(f"{path}: {reason}" for path, reason in offline.items())
                raise LogDirectoryError(f"no usable log directory ({reasons})")
        except BaseException:
            for directory in taken:
                directory.lock.release()
            raise
        return cls(taken, offline)

    @property
    def first(self) -> Path:
        """The directory that also holds what a broker keeps once."""
        return self._directories[0].path

    @property
    def stored_broker_id(self) -> int | None:
        """The broker id that the directories were written with, None for new ones."""
        return next(
            (found for each in self._directories if (found := each.stored_broker_id) is not None),
            None,
        )

    @property
    def stored_cluster_id(self) -> str | None:
        """The cluster id that the directories were written with, None for new ones."""
        return next(
            (found for each in self._directories if (found := each.stored_cluster_id) is not None),
            None,
        )

    def claim(self, *, broker_id: int, cluster_id: str) -> None:
        """Check that every directory is this broker's, and make new ones so.

        All are checked before any is touched. Raises LogDirectoryError naming the owner found.
        """
        checked = [
            (directory, directory.check_owner(broker_id=broker_id, cluster_id=cluster_id))
            for directory in self._directories
        ]
        for directory, meta in checked:
            try:
                directory.settle(meta)
            except OSError as error:
                reason = error.strerror or error
                raise LogDirectoryError(f"cannot use {directory.path}: {reason}") from error

    def load(self, config_for: Callable[[str], LogConfig], *, now_ms: int) -> None:
        """Open every partition found; `config_for` gives a topic's log settings.

        Raises LogDirectoryError for a partition that lies in two directories or cannot be opened.
        """
        for directory in self._directories:
            self._load(directory, config_for, now_ms)

    def _load(
        self,
        directory: DirectoryState,
        config_for: Callable[[str], LogConfig],
        now_ms: int,
    ) -> None:
        for path in directory.partition_paths():
            if names.is_marked_for_deletion(path.name):
                self._removals.append(_Removal(now_ms, partial(_remove_tree, path)))
                continue
            tp = names.parse_partition_directory(path.name)
            if tp is None or names.is_future(path.name):
                _log.warning("leaving %s alone: it is not a partition", path)
                continue
            if tp in self.logs:
                raise LogDirectoryError(
                    f"{tp} lies in both {self._home[tp].path} and {directory.path}: remove one"
                )
            self.logs[tp] = directory.load(tp, path, config_for(tp.topic), now_ms)
            self._home[tp] = directory

    # --- what there is -----------------------------------------------------------------------

    @property
    def clean_start(self) -> bool:
        """True when every directory was left by a clean shutdown, or was new."""
        return all(directory.clean for directory in self._directories)

    @property
    def previous_broker_epoch(self) -> int:
        """The broker epoch the clean-shutdown markers agree on; -1 without (KIP-966)."""
        epochs = {directory.broker_epoch for directory in self._directories}
        return epochs.pop() if len(epochs) == 1 else -1

    def directory_of(self, tp: TopicPartition) -> Path:
        return self._home[tp].path

    def sizes(self) -> dict[Path, dict[TopicPartition, int]]:
        """Bytes of log per partition, by directory."""
        found: dict[Path, dict[TopicPartition, int]] = {
            directory.path: {} for directory in self._directories
        }
        for tp, log in self.logs.items():
            found[self._home[tp].path][tp] = log.size
        return found

    def usage(self) -> list[DirectoryUsage]:
        """Sizes of partitions and volumes, by directory; looks at the volumes."""
        usages = []
        for directory, sizes in self.sizes().items():
            volume = shutil.disk_usage(directory)
            usages.append(DirectoryUsage(directory, sizes, volume.total, volume.free))
        return usages

    # --- partitions --------------------------------------------------------------------------

    def create(
        self, tp: TopicPartition, config: LogConfig, topic_id: UUID | None, now_ms: int
    ) -> PartitionLog:
        """The partition's log, created in the directory with the fewest partitions.

        Raises KafkaError INCONSISTENT_TOPIC_ID for a log of another topic of that name, and
        KAFKA_STORAGE_ERROR when the directory does not take it.
        """
        existing = self.logs.get(tp)
        if existing is not None:
            return existing
        directory = min(self._directories, key=self._population)
        try:
            log = PartitionLog.open(
                directory.path / names.partition_directory(tp),
                tp,
                config,
                clean=True,
                recovery_point=0,
                now_ms=now_ms,
                topic_id=topic_id,
            )
        except OSError as error:
            message = f"cannot create {tp} in {directory.path}: {error.strerror or error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        self.logs[tp] = log
        self._home[tp] = directory
        return log

    def _population(self, directory: DirectoryState) -> int:
        return sum(home is directory for home in self._home.values())

    def delete(self, tp: TopicPartition, now_ms: int) -> None:
        """Give a partition up: its directory is renamed now and removed after the file delay.

        Raises KafkaError KAFKA_STORAGE_ERROR, the partition still there, when it cannot be renamed.
        """
        log = self.logs[tp]
        directory = self._home[tp]
        target = directory.path / names.delete_directory(tp, uuid.uuid4())
        try:
            log.directory.rename(target)
        except OSError as error:
            message = f"cannot delete {tp} in {directory.path}: {error.strerror or error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        del self.logs[tp], self._home[tp]
        log.moved_to(target)
        log.close(clean=False)
        due_ms = now_ms + log.config.file_delete_delay_ms
        self._removals.append(_Removal(due_ms, partial(_remove_tree, target)))

    # --- upkeep ------------------------------------------------------------------------------

    def housekeeping(self, now_ms: int, *, run: Callable[[Work], None] = _at_once) -> None:
        """Retention, producer expiration, and the removal of files whose delay is over.

        ``run`` gets the removals, which may block; pass something that hands them to a thread.
        """
        for log in list(self.logs.values()):
            if log.failure is not None:
                continue
            try:
                removed = log.delete_old_segments(now_ms)
            except KafkaError as error:
                _log.error("retention of %s: %s", log.tp, error)
                continue
            log.expire_producers(now_ms)
            if removed:
                due_ms = now_ms + log.config.file_delete_delay_ms
                self._removals.append(_Removal(due_ms, partial(remove_files, removed)))
        self.remove_due(now_ms, run=run)

    def remove_due(self, now_ms: int, *, run: Callable[[Work], None] = _at_once) -> None:
        """Remove the files and directories whose delay is over; cheap to ask often."""
        due = [removal for removal in self._removals if removal.due_ms <= now_ms]
        self._removals = [removal for removal in self._removals if removal.due_ms > now_ms]
        for removal in due:
            run(removal.work)

    def checkpoint_work(self) -> list[Work]:
        """Writes of the checkpoint files with the offsets of now; run in order, in one thread."""
        return [
            partial(directory.write_checkpoints, *directory.checkpoints(self._logs_in(directory)))
            for directory in self._directories
        ]

    def checkpoint(self) -> None:
        """Write recovery points, log start offsets and high watermarks. Blocks."""
        for work in self.checkpoint_work():
            work()

    def _logs_in(self, directory: DirectoryState) -> list[PartitionLog]:
        return [log for tp, log in self.logs.items() if self._home[tp] is directory]

    def close(self, *, clean: bool = True, broker_epoch: int = -1, now_ms: int = 0) -> None:
        """Close every log and give the directories up.

        Clean: everything is put on the device, then the marker says so, in each directory whose
        logs all closed without an error. Blocks.
        """
        for directory in self._directories:
            try:
                if clean:
                    self._close_clean(directory, broker_epoch, now_ms)
                else:
                    for log in self._logs_in(directory):
                        log.close(clean=False)
            finally:
                directory.lock.release()
        self.logs = {}

    def _close_clean(self, directory: DirectoryState, broker_epoch: int, now_ms: int) -> None:
        logs = self._logs_in(directory)
        failed = False
        for log in logs:
            try:
                log.flush(now_ms=now_ms)
            except KafkaError as error:
                _log.error("%s was not flushed: %s", log.tp, error)
                failed = True
        content = directory.checkpoints(logs)
        for log in logs:
            try:
                log.close(clean=not failed, now_ms=now_ms)
            except KafkaError as error:
                _log.error("%s was not closed cleanly: %s", log.tp, error)
                failed = True
        directory.write_checkpoints(*content)
        if not failed:
            directory.mark_clean(broker_epoch)


def _remove_tree(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        _log.warning("%s is left behind: %s", path, error.strerror or error)
