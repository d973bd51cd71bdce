"""Opening what log directories hold, at the start of a broker (Kafka's `LogManager.loadLogs`).

The logs of one directory are opened by several threads. A partition that lies in two directories
was being moved when the broker stopped: its copies are opened too, and which of them is the log is
decided when all directories are loaded (`future_log_recovery`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from pathlib import Path
from time import monotonic as _clock_s

from barnabas_broker.log import future_log_recovery, move_record, names, parallel
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directory import DirectoryState
from barnabas_broker.log.future_log_recovery import Copy
from barnabas_broker.log.move_record import MoveRecord
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.recovery_progress import RecoveryProgress
from barnabas_broker.log.removals import Removals
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


class DirectoryLoading:
    """What was found in the directories: `load` each of them, then `settle_copies` once."""

    def __init__(
        self,
        config_for: Callable[[str], LogConfig],
        *,
        now_ms: int,
        threads: int,
        progress: RecoveryProgress,
    ) -> None:
        """`config_for` gives a topic's log settings; ``threads`` work on each directory."""
        self._config_for = config_for
        self._now_ms = now_ms
        self._threads = threads
        self._progress = progress
        self._copies: dict[TopicPartition, list[Copy]] = {}
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.homes: dict[TopicPartition, DirectoryState] = {}
        #: partitions with another copy in a directory that is offline
        self.former_copies: set[TopicPartition] = set()
        #: partitions that are here and were not opened, for what is here may lack records
        self.unopened: set[TopicPartition] = set()
        #: future directories that a former process left, with the directory they are in
        self.unfinished: dict[TopicPartition, tuple[DirectoryState, Path]] = {}
        self.removals = Removals()

    def load(self, directory: DirectoryState) -> None:
        """Open every partition of a directory; one with a move record is not a log yet.

        Raises OSError, LogDirectoryError for a partition that lies in two directories or makes no
        sense, and GivenUpError where the progress is given up.
        """
        config_of = cache(self._config_for)
        found: list[tuple[TopicPartition, Path]] = []
        notes: list[MoveRecord | None] = []
        for path in directory.partition_paths():
            tp = self._partition_of(path, directory)
            if tp is None:
                continue
            note = self._note_of(tp, directory, path)
            if note is not None and note.is_target(directory.path) and not note.switched:
                directory.forget(tp)
            found.append((tp, path))
            notes.append(note)
        said = directory.begin_loading(self._progress, found)
        load = parallel.unless(self._progress.given_up.is_set, directory.load)
        work = [
            partial(load, tp, path, config_of(tp.topic), self._now_ms, said) for tp, path in found
        ]
        logs = parallel.each(work, threads=self._threads, progress=lambda _: said, clock_s=_clock_s)
        for (tp, _), note, log in zip(found, notes, logs, strict=True):
            if note is None and tp not in self.logs and tp not in self._copies:
                self.logs[tp], self.homes[tp] = log, directory
                continue
            copies = self._copies.setdefault(tp, [])
            if tp in self.logs:
                copies.append(Copy(self.logs.pop(tp), self.homes.pop(tp), None))
            copies.append(Copy(log, directory, note))

    def _partition_of(self, path: Path, directory: DirectoryState) -> TopicPartition | None:
        """The partition whose log a directory holds; None where it is not one, or not any more."""
        if names.is_marked_for_deletion(path.name):
            self.removals.add_tree(path, directory.health, self._now_ms)
            return None
        moving = names.parse_future_directory(path.name)
        if moving is not None:
            if moving in self.unfinished:
                self.removals.add_tree(path, directory.health, 0)
            else:
                self.unfinished[moving] = directory, path
            return None
        tp = names.parse_partition_directory(path.name)
        if tp is None:
            _log.warning("Directory ignored, its name is no partition: %s", path)
        return tp

    def _note_of(
        self, tp: TopicPartition, directory: DirectoryState, path: Path
    ) -> MoveRecord | None:
        """The note of a move in a partition's directory; without one there is but one copy.

        Raises LogDirectoryError where there is another, before either is touched.
        """
        note = move_record.read(path)
        if note is None and tp in self.logs:
            raise future_log_recovery.two_homes(tp, self.homes[tp].path, directory.path)
        return note

    def settle_copies(self, offline: Collection[Path]) -> None:
        """Open the right copy of each partition whose move was interrupted."""
        for tp, copies in self._copies.items():
            there = [copy for copy in copies if copy.home.path not in offline]
            if there:
                self._settle(tp, there, offline)
        self._copies = {}

    def _settle(self, tp: TopicPartition, there: Sequence[Copy], offline: Collection[Path]) -> None:
        try:
            settled = future_log_recovery.settle(
                tp,
                there,
                offline={str(path.absolute()) for path in offline},
                checkpoint=self._checkpoint_with,
                now_ms=self._now_ms,
            )
        except (OSError, KafkaError) as error:
            if isinstance(error, OSError):
                there[0].home.refuse_without_means(error)
            _log.error("Log not opened, its move is unresolved: partition=%s %s", tp, error)
            settled = future_log_recovery.Settled()
        if settled.log is None or settled.home is None:
            self.unopened.add(tp)
            return
        self.logs[tp], self.homes[tp] = settled.log, settled.home
        if settled.offline_copy:
            self.former_copies.add(tp)
        for copy in there:
            if copy.log is not settled.log:
                if settled.removed is not None:
                    self.removals.add_tree(settled.removed, copy.home.health, self._now_ms)
                if settled.future is not None:
                    self.unfinished[tp] = copy.home, settled.future

    def _checkpoint_with(self, copy: Copy) -> None:
        beside = [log for tp, log in self.logs.items() if self.homes[tp] is copy.home]
        copy.home.write_for([*beside, copy.log])
