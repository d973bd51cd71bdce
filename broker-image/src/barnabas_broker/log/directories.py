"""All log directories of a broker: opening, loading, placing, checkpoints, clean shutdown.

A directory is taken in this order, each step safe to be killed in: lock; meta.properties; consume
the clean-shutdown marker (removed before anything is loaded, so that a crash while loading counts
as unclean: KAFKA-10471); load the partitions; and, on the way out, close the logs, write the
checkpoints, and put the marker back last of all.

What may block for long is handed out as callables: ``checkpoint_work`` and the ``run`` argument
of ``remove_due`` let the event loop give them to a thread.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic as _clock_s
from typing import Final
from uuid import UUID

from barnabas_broker.cluster.failures import call_isolated, each_isolated
from barnabas_broker.log import names, parallel
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directory import (
    DirectoryState,
    LogDirectoryError,
    VolumeUsage,
    refuse_without_means,
)
from barnabas_broker.log.directory_loading import DirectoryLoading
from barnabas_broker.log.files import rename
from barnabas_broker.log.health import DirectoryHealth, Health, Reserve, lacks_means
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.recovery_progress import RecoveryProgress
from barnabas_broker.log.removals import Removals, Work, remove_given_up
from barnabas_broker.log.replica_move import ReplicaMove
from barnabas_broker.log.truncated_logs import TruncatedLogs
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)

__all__ = ["LogDirectories", "LogDirectoryError"]

MOST_PREFERENCES: Final = 10_000
"""Partitions that do not exist yet whose directory is remembered; the oldest is forgotten."""

SYNCS_AT_ONCE: Final = 8
"""Logs of one directory that a clean stop flushes at once, or more where so many threads are set.

A file system commits the syncs that wait together with one write of its journal.
"""


def _at_once(work: Work) -> None:
    work()


class LogDirectories:
    """The partitions of a broker and where they lie; in the order `take`, `claim`, `load`."""

    def __init__(
        self,
        directories: list[DirectoryState],
        offline: dict[Path, str],
        order: Sequence[Path],
    ) -> None:
        self._directories = directories
        self._order = order
        self._home: dict[TopicPartition, DirectoryState] = {}
        self._removals = Removals()
        #: where a partition is to be created that does not exist yet; `prefer` bounds it
        self._preferred: dict[TopicPartition, DirectoryState] = {}
        #: partitions with another copy in a directory that is offline
        self._former_copies: set[TopicPartition] = set()
        #: partitions that are here and were not opened, for what is here may lack records
        self.unopened: set[TopicPartition] = set()
        self.truncated_logs = TruncatedLogs()
        #: partitions on their way to another directory
        self.moves: dict[TopicPartition, ReplicaMove] = {}
        #: future directories that a former process left, with the directory they are in
        self.unfinished: dict[TopicPartition, tuple[DirectoryState, Path]] = {}
        self.logs: dict[TopicPartition, PartitionLog] = {}
        #: directories that were found unusable at the start, with the reason
        self.offline = offline

    @classmethod
    def take(cls, dirs: Sequence[str | Path]) -> LogDirectories:
        """Lock every directory and read whose it is; missing ones are created.

        `claim` and `load` follow. A directory with an I/O error is left offline as long as another
        one works. Raises LogDirectoryError, with one clear line, when none does, for a directory
        that is locked, and when the process lacks file descriptors or rights.
        """
        taken: list[DirectoryState] = []
        offline: dict[Path, str] = {}
        order = tuple(dict.fromkeys(Path(name) for name in dirs))
        try:
            for path in order:
                try:
                    taken.append(DirectoryState.take(path))
                except OSError as error:
                    refuse_without_means(path, error)
                    offline[path] = f"{error.strerror or error}"
                    _log.error("Log directory offline: log.dir=%s %s", path, offline[path])
            if not taken:
                raise LogDirectoryError(_none_left(offline))
        except BaseException:
            for directory in taken:
                directory.lock.release()
            raise
        return cls(taken, offline, order)

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

    def states(self) -> dict[Path, Health]:
        """The state of each directory in log.dirs."""
        found = {each.path: each.health.state for each in self._directories}
        return found | dict.fromkeys(self.offline, Health.OFFLINE)

    def claim(self, *, broker_id: int, cluster_id: str) -> None:
        """Check that every directory belongs to this broker, and mark new ones as its own.

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
                self._give_up(directory, error)

    def load(
        self,
        config_for: Callable[[str], LogConfig],
        *,
        now_ms: int,
        threads: int = 1,
        progress: RecoveryProgress | None = None,
    ) -> None:
        """Open every partition found; `config_for` gives a topic's log settings.

        ``threads`` work on each directory. One with an I/O error is left offline, as in `take`.
        Raises LogDirectoryError when none is left, and for a partition that lies in two directories
        or makes no sense; GivenUpError where `progress` is given up.
        """
        progress = progress or RecoveryProgress(_clock_s)
        loading = DirectoryLoading(config_for, now_ms=now_ms, threads=threads, progress=progress)
        self.logs, self._home = loading.logs, loading.homes
        self._removals, self._former_copies = loading.removals, loading.former_copies
        self.unopened, self.unfinished = loading.unopened, loading.unfinished
        for directory in list(self._directories):
            try:
                loading.load(directory)
            except OSError as error:
                self._give_up(directory, error)
        loading.settle_copies(self.offline)
        progress.finish(len(self.logs))

    def _give_up(self, directory: DirectoryState, error: OSError) -> None:
        """Leave a directory that fails at the start offline, if there is another one."""
        directory.refuse_without_means(error)
        reason = error.strerror or str(error)
        for log in self._logs_in(directory):
            log.close(clean=False)
            del self.logs[log.tp], self._home[log.tp]
        directory.lock.release()
        self._directories.remove(directory)
        self.offline[directory.path] = reason
        _log.error("Log directory offline: log.dir=%s %s", directory.path, reason)
        if not self._directories:
            raise LogDirectoryError(_none_left(self.offline)) from error

    # --- health ------------------------------------------------------------------------------

    def watch(self, on_change: Callable[[DirectoryHealth], None]) -> None:
        """Call `on_change` for every change of a directory's state, in the thread that found it."""
        for directory in self._directories:
            directory.health.on_change = on_change

    def probes(self, reserve: Reserve) -> list[tuple[Path, Work]]:
        """Checks of each volume's free space against the reserve. Each blocks, and may hang."""
        return [
            (it.path, partial(it.probe, reserve)) for it in self._directories if it.health.readable
        ]

    @property
    def all_writable(self) -> bool:
        """Whether each directory takes records."""
        return not self.offline and all(it.health.writable for it in self._directories)

    @property
    def has_offline(self) -> bool:
        """Whether a directory is offline, so that partitions may be in it."""
        return bool(self.offline) or not all(it.health.readable for it in self._directories)

    @property
    def all_offline(self) -> str | None:
        """Why no directory can be used any more; None while one can."""
        if any(it.health.readable for it in self._directories):
            return None
        reasons = {it.path: it.health.reason for it in self._directories}
        return _none_left(self.offline | reasons)

    # --- what there is -----------------------------------------------------------------------

    @property
    def clean_start(self) -> bool:
        """True when every directory was left by a clean shutdown, or was new."""
        return all(directory.clean for directory in self._directories)

    def find_truncated(self, held: Mapping[TopicPartition, bool]) -> bool:
        """Find the logs that may be truncated since an unclean shutdown; whether there are any.

        `held` are the partitions that this broker hosts as far as is known, and whether each is in
        sync here: one that is in sync and has no log counts as truncated. A directory in which such
        partitions remain at the end is not marked as cleanly shut down.
        """
        for tp, in_sync in held.items():
            home = self._home.get(tp)
            if in_sync if home is None else not home.clean:
                self.truncated_logs.partitions.add(tp)
        return bool(self.truncated_logs.partitions)

    @property
    def paths(self) -> Sequence[Path]:
        """All directories, as configured."""
        return self._order

    def volume(self, path: Path) -> VolumeUsage | None:
        """How full the volume of a directory is; None for an unusable directory. Blocks."""
        directory = next((it for it in self._directories if it.path == path), None)
        if directory is None or not directory.health.readable:
            return None
        try:
            usage = shutil.disk_usage(path)
        except OSError as error:
            directory.health.failed(error)
            return None
        return VolumeUsage(usage.total, usage.free)

    # --- partitions --------------------------------------------------------------------------

    def create(
        self, tp: TopicPartition, config: LogConfig, topic_id: UUID | None, now_ms: int
    ) -> PartitionLog:
        """The partition's log, created in the writable directory with the fewest partitions.

        Raises KafkaError INCONSISTENT_TOPIC_ID for a log of another topic of that name, and
        KAFKA_STORAGE_ERROR when there is no such directory or it does not take it.
        """
        existing = self.logs.get(tp)
        if existing is not None:
            existing.adopt_topic_id(topic_id)
            return existing
        directory = self._place(tp)
        path = directory.path / names.partition_directory(tp)
        try:
            for each in self._directories:
                if tp in each.checkpointed:
                    # They speak of a deleted partition of that name: of another log.
                    each.write_for(self._logs_in(each), surely=each is directory)
            log = PartitionLog.open(
                path,
                tp,
                config,
                now_ms=now_ms,
                topic_id=topic_id,
                health=directory.health,
            )
        except OSError as error:
            directory.health.failed(error)
            remove_given_up(path)
            # What is left, where there was no file descriptor to remove it, is used the next time:
            # a start finds no log in two directories.
            self.prefer(tp, directory)
            message = f"cannot create {tp} in {directory.path}: {error.strerror or error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        self.logs[tp] = log
        self._home[tp] = directory
        return log

    def _place(self, tp: TopicPartition) -> DirectoryState:
        preferred = self._preferred.pop(tp, None)
        if preferred is not None and preferred.health.writable:
            return preferred
        able = [it for it in self._directories if it.health.writable]
        if len(able) == 1:
            return able[0]
        if not able:
            states = (f"{it.path} is {it.health.state.value}" for it in self._directories)
            message = f"no log directory takes {tp}: {', '.join(states)}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        return min(able, key=self._population)

    def _population(self, directory: DirectoryState) -> int:
        return sum(home is directory for home in self._home.values())

    def delete(self, tp: TopicPartition, now_ms: int) -> None:
        """Delete a partition: its directory is renamed now and removed after the file delay.

        Raises KafkaError KAFKA_STORAGE_ERROR, with the partition still there, when it cannot be
        renamed.
        """
        log, directory, target = self._put_away(tp, names.delete_directory)
        due_ms = now_ms + log.config.file_delete_delay_ms
        self._removals.add_tree(target, directory.health, due_ms)
        self._delete_copy(tp, due_ms)

    def set_aside(self, tp: TopicPartition, now_ms: int) -> Path:
        """Keep the log of an earlier topic of that name, in a renamed directory.

        Returns its new path. Raises as `delete` does.
        """
        _, _, target = self._put_away(tp, names.stray_directory)
        self._delete_copy(tp, now_ms)
        return target

    def _put_away(
        self, tp: TopicPartition, name: Callable[[TopicPartition, uuid.UUID], str]
    ) -> tuple[PartitionLog, DirectoryState, Path]:
        log, directory = self.logs[tp], self._home[tp]
        target = directory.path / name(tp, uuid.uuid4())
        try:
            rename(log.directory, target)
        except OSError as error:
            directory.health.failed(error)
            message = f"cannot rename {tp} in {directory.path}: {error.strerror or error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        del self.logs[tp], self._home[tp]
        directory.cuts.pop(tp, None)
        self._former_copies.discard(tp)
        self.truncated_logs.trust(tp)
        log.moved_to(target)
        log.close(clean=False)
        return log, directory, target

    def _delete_copy(self, tp: TopicPartition, due_ms: int) -> None:
        """Delete the future log of a deleted partition, if it was being moved."""
        if tp in self.unfinished:
            home, path = self.unfinished.pop(tp)
            self._removals.add_tree(path, home.health, due_ms)
        move = self.moves.get(tp)
        other = None if move is None else move.other
        if other is None:
            return
        home, path = other
        target = home.path / names.delete_directory(tp, uuid.uuid4())
        try:
            rename(path, target)
        except FileNotFoundError:  # A thread of the move was faster.
            return
        except OSError as error:
            home.health.failed(error)
            return
        self._removals.add_tree(target, home.health, due_ms)

    # --- moves -------------------------------------------------------------------------------

    def find(self, path: str) -> DirectoryState | None:
        """The directory configured as ``path``; None if it is offline.

        Raises KafkaError LOG_DIR_NOT_FOUND if it is not configured.
        """
        if path not in {name for it in self._order for name in (str(it), str(it.absolute()))}:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is none of log.dirs")
        for directory in self._directories:
            if path in (str(directory.path), str(directory.path.absolute())):
                return directory if directory.health.readable else None
        return None

    def prefer(self, tp: TopicPartition, directory: DirectoryState) -> None:
        """Create a partition in ``directory`` once it is assigned to this broker."""
        if tp in self.logs:
            return
        self._preferred.pop(tp, None)
        self._preferred[tp] = directory
        while len(self._preferred) > MOST_PREFERENCES:
            del self._preferred[next(iter(self._preferred))]

    def begin_move(
        self, tp: TopicPartition, target: DirectoryState, *, found: Path | None = None
    ) -> ReplicaMove:
        """A move of a partition that is here, to a directory it is not in.

        Raises KafkaError KAFKA_STORAGE_ERROR while a copy lies in a directory that is offline.
        """
        if self.has_former_copy(tp):
            reason = f"a former copy of {tp} lies in a log directory that is offline"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        move = ReplicaMove(self.logs[tp], self._home[tp], target, found=found)
        self.moves[tp] = move
        return move

    def home_of(self, tp: TopicPartition) -> DirectoryState:
        """The directory that holds a partition's log."""
        return self._home[tp]

    def switched(self, move: ReplicaMove) -> None:
        """Note that the future log of a move has become the current one."""
        self.logs[move.tp], self._home[move.tp] = move.opened(), move.target
        move.home.cuts.pop(move.tp, None)

    def ended(self, move: ReplicaMove, removed: Path | None, now_ms: int) -> None:
        """Note that a move is over; ``removed`` is the copy to delete."""
        if self.moves.get(move.tp) is move:
            del self.moves[move.tp]
        if removed is not None:
            health = move.home.health if removed.parent == move.home.path else move.target.health
            delay_ms = move.source.config.file_delete_delay_ms
            self._removals.add_tree(removed, health, now_ms + delay_ms)

    def has_former_copy(self, tp: TopicPartition) -> bool:
        """Whether an outdated copy of the partition is in an offline directory."""
        return tp in self._former_copies

    def keep_former_copy(self, tp: TopicPartition) -> None:
        """Leave an outdated copy where it is until the next start."""
        self._former_copies.add(tp)

    def checkpoint_work_of(self, directory: DirectoryState) -> Work:
        """The write of one directory's checkpoint files, with the current offsets."""
        return partial(directory.write, directory.checkpoint(self._logs_in(directory)))

    # --- truncation --------------------------------------------------------------------------

    def truncate(self, tp: TopicPartition, offset: int, *, now_ms: int) -> bool:
        """Truncate a partition's log to ``offset``; False when there is nothing above it. Blocks.

        The recovery point on disk is lowered first: records appended after the truncation would
        otherwise pass for synced. Raises KafkaError, with nothing truncated, when that fails.
        """
        log, home = self._held(tp)
        with home.lowered(log, offset, self._logs_in(home)):
            return log.truncate_to(offset, now_ms=now_ms)

    def truncate_fully_at(self, tp: TopicPartition, offset: int, *, now_ms: int) -> None:
        """Delete all records of a log and start it again, empty, at ``offset``. As `truncate`."""
        log, home = self._held(tp)
        with home.lowered(log, offset, self._logs_in(home)):
            log.truncate_fully_at(offset, now_ms=now_ms)

    def _held(self, tp: TopicPartition) -> tuple[PartitionLog, DirectoryState]:
        log, home = self.logs.get(tp), self._home.get(tp)
        if log is None or home is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp} was deleted")
        return log, home

    def checkpoint_surely(self, directory: DirectoryState) -> None:
        """Write a directory's checkpoints, from any thread. Blocks. Raises StorageError."""
        directory.write_for(self._logs_in(directory))

    # --- background tasks -----------------------------------------------------------------------

    def retention(self, now_ms: int) -> Generator[None, bool | None, None]:
        """Retention and producer expiration, a log at each step; more may happen between two."""

        def retain(log: PartitionLog) -> None:
            if removed := log.delete_old_segments(now_ms):
                self.remove_later(log, removed, now_ms)
            log.expire_producers(now_ms)

        for each in list(self.logs.values()):
            if self.logs.get(each.tp) is each and each.failure is None and not each.busy:
                each_isolated((each,), retain, "Retention", name=lambda log: log.tp)
            yield

    def remove_later(self, log: PartitionLog, paths: Sequence[Path], now_ms: int) -> None:
        """Unlink files of a log, renamed so that nothing finds them, after the file delay."""
        due_ms = now_ms + log.config.file_delete_delay_ms
        self._removals.add_files(paths, log.health, due_ms)

    def checkpoint_beside(self, tp: TopicPartition) -> None:
        """Write the checkpoints of a partition's directory, if it is still there. Blocks."""
        if (home := self._home.get(tp)) is not None:
            self.checkpoint_work_of(home)()

    def remove_due(self, now_ms: int, *, run: Callable[[Work], None] = _at_once) -> None:
        """Remove the files and directories whose delay is over; cheap to call often.

        ``run`` gets the removals, which may block; pass something that hands them to a thread.
        """
        for work in self._removals.take_due(now_ms):
            run(work)

    def checkpoint_work(self) -> list[Work]:
        """Writes of the checkpoint files with the offsets of now; run in order, in one thread."""
        return [self.checkpoint_work_of(directory) for directory in self._directories]

    def mark_work(self) -> list[Work]:
        """Writes of the high watermarks of now, which move more often than all else."""
        return [
            partial(
                directory.write_marks,
                {log.tp: log.high_watermark for log in self._logs_in(directory)},
            )
            for directory in self._directories
        ]

    def checkpoint(self) -> None:
        """Write recovery points, log start offsets and high watermarks. Blocks."""
        for work in self.checkpoint_work():
            work()

    def _logs_in(self, directory: DirectoryState) -> list[PartitionLog]:
        # Also called in a thread that cuts a log, while the event loop adds and removes others.
        return [log for tp, log in list(self.logs.items()) if self._home.get(tp) is directory]

    def close(
        self, *, clean: bool = True, broker_epoch: int = -1, now_ms: int = 0, threads: int = 1
    ) -> None:
        """Close every log, of all directories at once, and unlock them; `threads` work on each.

        A clean close syncs everything, then writes the clean shutdown file of each directory whose
        logs all closed without an error. Offline directories are not touched. Blocks.
        """
        at_once = max(threads, SYNCS_AT_ONCE)
        again: list[DirectoryState] = []

        def close(directory: DirectoryState) -> None:
            if clean and directory.health.readable:
                if not self._close_clean(directory, broker_epoch, now_ms, at_once):
                    again.append(directory)
                return
            logs = [partial(log.close, clean=False) for log in self._logs_in(directory)]
            call_isolated(logs, "Closing", directory.path)
            if not clean and any(each.refused for each in self._directories):
                directory.restore_marker()

        # At a start that has found none of them usable there is none to close.
        with ThreadPoolExecutor(max(len(self._directories), 1), "closing") as pool:
            closing = {it: pool.submit(close, it) for it in self._directories}
        each_isolated(closing, lambda it: closing[it].result(), "Closing", name=lambda it: it.path)
        # Where descriptors were missing for many logs at once, there may be some for one.
        alone = partial(self._close_clean, broker_epoch=broker_epoch, now_ms=now_ms, threads=1)
        each_isolated(again, alone, "Closing", name=lambda it: it.path)
        for directory in self._directories:
            directory.lock.release()
        self.logs = {}

    def _close_clean(
        self, directory: DirectoryState, broker_epoch: int, now_ms: int, threads: int
    ) -> bool:
        """Close what is in one directory; False, with all open, if fewer threads might seal it."""
        logs = self._logs_in(directory)
        seals = [partial(_failure, log, partial(log.seal, now_ms=now_ms)) for log in logs]
        said = partial(parallel.Progress, "flushed", directory.path, len(seals))
        errors = parallel.each(seals, threads=threads, progress=said, clock_s=_clock_s)
        causes = [error.__cause__ for error in errors if error is not None]
        if threads > 1 and any(isinstance(it, OSError) and lacks_means(it) for it in causes):
            return False
        good = not causes
        content = directory.checkpoint(logs)
        good &= not each_isolated(logs, lambda it: it.close(clean=False), "Closing", name=_tp_of)
        good &= self.truncated_logs.partitions.isdisjoint(log.tp for log in logs)
        if directory.write(content) and good:
            directory.mark_clean(broker_epoch)
        return True


def _none_left(offline: Mapping[Path, str]) -> str:
    reasons = "; ".join(f"{path}: {reason}" for path, reason in offline.items())
    return f"no usable log directory ({reasons})"


def _tp_of(log: PartitionLog) -> TopicPartition:
    return log.tp


def _failure(log: PartitionLog, work: Work) -> Exception | None:
    failed = each_isolated((log,), lambda _: work(), "Closing", name=_tp_of)
    return failed[0].cause if failed else None
