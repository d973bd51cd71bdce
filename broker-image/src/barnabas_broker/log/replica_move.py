"""A partition on its way from one log directory of the broker to another (KIP-113).

The copy grows in a directory ``topic-partition.<32 hex digits>-future`` of the target, in slices of
whole batches, while the log it is made from serves. Each step says where it runs: ``loop`` steps
take no longer than a produce request, ``thread`` steps touch nothing but the copy.

::

    COPYING ──install──▸ INSTALLED ──switch──▸ SWITCHED ──retire──▸ done
       └──────────┴── give up: the copy goes, the source serves on

======================  ======  ===================================================================
step                    where   what a crash after it leaves
======================  ======  ===================================================================
``open_copy``           thread  a future directory: the move goes on at the next start
``next_part``/``take``  both    the same
``sync``                thread  the same
``install``             thread  notes in both copies, then the copy under its final name: the larger
                                one is opened (`move_note` has the table)
``switch``              loop    the same: what is appended goes to the copy, which so is larger
``sync``                thread  the same; every record that the source has is on the new device
``note_switched``       thread  the copy is opened
``retire``              thread  only the copy is left, the source is removed like a deleted one
======================  ======  ===================================================================

Nothing is cleaned while it moves: a tombstone that goes from the source after its key was copied
would bring the key back. Retention goes on; its effect is taken over at the switch.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from barnabas_broker.invariants import violated
from barnabas_broker.log import move_record, names
from barnabas_broker.log.directory import DirectoryState
from barnabas_broker.log.files import FileSlice, remove_tree, rename, sync_directory
from barnabas_broker.log.health import DirectoryHealth, lacks_room
from barnabas_broker.log.loader import Checkpointed
from barnabas_broker.log.move_record import MoveRecord
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

SLICE_BYTES: Final = 1 << 20
"""What one step copies; as much as Kafka's replicas fetch at a time."""

FINAL_BYTES: Final = 256 << 10
"""What may be copied on the event loop when the copy takes over."""


class Stage(Enum):
    """How far a move is; see the module's docstring."""

    COPYING = "copying"
    INSTALLED = "installed"
    SWITCHED = "switched"


class Part(NamedTuple):
    """What one step copies. With ``begin_at`` the copy begins there again, with nothing else."""

    slice: FileSlice
    begin_at: int | None


class ReplicaMove:
    """One move. Made on the event loop; `LogDirectories` knows of it until it is over."""

    def __init__(
        self,
        source: PartitionLog,
        home: DirectoryState,
        target: DirectoryState,
        *,
        found: Path | None = None,
    ) -> None:
        """``found`` is the future directory that an earlier process left behind."""
        self.tp: TopicPartition = source.tp
        self.source = source
        self.home = home
        self.target = target
        self.stage = Stage.COPYING
        self.copy: PartitionLog | None = None
        self._found = found
        self._restarting = False
        self._truncations = source.truncations
        self.path = found or target.path / names.future_directory(self.tp, uuid.uuid4())

    @property
    def _note(self) -> MoveRecord:
        return MoveRecord(str(self.home.path.absolute()), str(self.target.path.absolute()))

    @property
    def final_path(self) -> Path:
        """Where the copy lies once it is installed."""
        return self.target.path / names.partition_directory(self.tp)

    @property
    def copied_bytes(self) -> int:
        """Bytes of log in the copy."""
        return self.copy.size if self.copy is not None else 0

    @property
    def offset_lag(self) -> int:
        """How many offsets the copy is behind its source."""
        if self.stage is Stage.SWITCHED:
            return 0
        start = self.source.log_start_offset
        end = start if self.copy is None else max(self.copy.log_end_offset, start)
        return max(self.source.log_end_offset - end, 0)

    @property
    def other(self) -> tuple[DirectoryState, Path] | None:
        """The copy that is not the log, if it has the name of one."""
        if self.stage is Stage.INSTALLED:
            return self.target, self.path
        return (self.home, self.source.directory) if self.stage is Stage.SWITCHED else None

    # --- copying -----------------------------------------------------------------------------

    def open_copy(self, now_ms: int) -> None:
        """Thread. Make the copy's directory, or take up the one that was found.

        Raises OSError and KafkaError.
        """
        source = self.source
        for attempt in range(2):
            try:
                self.copy = PartitionLog.open(
                    self.path,
                    self.tp,
                    source.config,
                    Checkpointed(clean=self._found is None),
                    now_ms=now_ms,
                    topic_id=source.topic_id,
                    health=self.target.health,
                )
                break
            except KafkaError as error:
                if attempt or error.code is not ErrorCode.INCONSISTENT_TOPIC_ID:
                    raise
                # Of an earlier topic of that name.
                remove_tree(self.path)
                self._found = None
        move_record.remove(self.path)

    def check_found(self) -> bool:
        """Loop. Whether what was found is the beginning of what the source is now.

        Its last batch is there, byte for byte. Of a log that has been cleaned that proves nothing.
        """
        copy, source = self.opened(), self.source
        if self._found is None:
            return True
        if source.cleaned_to is not None or source.config.compact:
            return False
        last, data = None, b""
        for segment in reversed(copy.segments):
            last = segment.find(copy.log_end_offset - 1)
            if last is not None:
                data = segment.file.read(last.position, last.size)
                break
        if last is None:
            return True
        if not source.log_start_offset <= last.base_offset < source.log_end_offset:
            return False
        there = source.read(last.base_offset, 1, upper_bound=source.log_end_offset)
        return there.length == len(data) and there.read() == data

    def next_part(self, max_bytes: int = SLICE_BYTES) -> Part | None:
        """Loop. What is to be copied next; None when the copy has everything.

        Raises KafkaError when the source cannot be read.
        """
        copy, source = self.opened(), self.source
        copy.config = source.config
        if source.truncations != self._truncations or copy.log_end_offset > source.log_end_offset:
            # What was cut may have been copied already, and other records be in its place.
            self._truncations = source.truncations
            self._restarting = True
        start = source.log_start_offset
        part = source.read(
            start if self._restarting else max(copy.log_end_offset, start),
            min(max_bytes, source.config.segment_bytes),
            upper_bound=source.log_end_offset,
        )
        begin = min(part.first_offset, start)
        if self._restarting or copy.log_end_offset < begin:
            return Part(part, begin)
        return Part(part, None) if part.length else None

    def restart(self) -> None:
        """Loop. Have the next part replace everything that was copied."""
        self._restarting = True

    def take(self, part: Part, *, now_ms: int) -> int:
        """Thread. Append a part to the copy; returns its bytes, 0 when nothing came of it.

        Raises KafkaError.
        """
        copy = self.opened()
        data = part.slice.read()
        if not part.slice.intact:
            return 0
        if part.begin_at is not None:
            copy.truncate_fully_at(part.begin_at, now_ms=now_ms)
            self._restarting = False
        if not data:
            return 0
        if len(data) > copy.config.segment_bytes:  # It has become smaller since this was written.
            copy.config = replace(copy.config, segment_bytes=len(data))
        if copy.append_as_follower(data, now_ms=now_ms) is None:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.tp}: no batch where one was")
        return len(data)

    # --- taking over -------------------------------------------------------------------------

    def install(self) -> None:
        """Thread. Give the copy, which was synced before, its final name.

        Raises OSError for the target, KafkaError for the source.
        """
        copy = self.opened()
        move_record.write(self.path, self._note)
        try:
            move_record.write(self.source.directory, self._note)
        except OSError as error:
            self.home.health.failed(error)
            # A full disk is what one moves away from; a start that sees both copies needs no note.
            if not lacks_room(error):
                message = f"{self.source.directory}: {error.strerror or error}"
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        rename(self.path, self.final_path)
        self.path = self.final_path
        copy.moved_to(self.path)
        self.stage = Stage.INSTALLED
        sync_directory(self.target.path)

    def try_switch(self, now_ms: int) -> bool:
        """Loop. Copy what is missing and make the copy the log; False when that is too much.

        Not while the source is being cut. It is not closed: its readers have slices. Raises
        KafkaError.
        """
        copy, source = self.opened(), self.source
        assert not source.busy, violated("a log that is being cut is not replaced by its copy")
        left = FINAL_BYTES
        while (part := self.next_part(FINAL_BYTES)) is not None:
            if part.begin_at is not None or part.slice.length > left:
                return False
            left -= self.take(part, now_ms=now_ms)
        copy.take_over(source, now_ms=now_ms)
        self.stage = Stage.SWITCHED
        return True

    def note_switched(self) -> None:
        """Thread. The copy, synced up to the switch, is the log from now on. Raises OSError."""
        move_record.write(self.path, replace(self._note, switched=True))

    def retire(self) -> Path | None:
        """Thread. Mark the source for deletion; returns its new path. Raises OSError.

        None when a deletion of the topic has done so.
        """
        path = self.home.path / names.delete_directory(self.tp, uuid.uuid4())
        try:
            rename(self.source.directory, path)
        except FileNotFoundError:
            return None
        sync_directory(self.home.path)
        return path

    def forget(self) -> None:
        """Thread. There is one copy again. Raises OSError."""
        move_record.remove(self.path)

    def release_source(self, path: Path) -> None:
        """Loop. Nothing that is said of the files of the retired source is said of its disk.

        It is not closed: readers may still use it.
        """
        self.source.health = DirectoryHealth(self.home.path)
        self.source.moved_to(path)

    # --- giving up ---------------------------------------------------------------------------

    def suspend(self) -> None:
        """Thread. Leave the copy as one that the next start goes on with. Raises OSError."""
        if self.copy is not None:
            self.copy.close(clean=False)
        if self.stage is Stage.INSTALLED:
            self._leave(names.future_directory(self.tp, uuid.uuid4()))

    def drop_copy(self) -> Path | None:
        """Thread. Mark the copy for deletion; returns its new path, None when there is none.

        Raises OSError.
        """
        if self.copy is not None:
            self.copy.close(clean=False)
        return self._leave(names.delete_directory(self.tp, uuid.uuid4()))

    def _leave(self, name: str) -> Path | None:
        installed, self.stage = self.stage is Stage.INSTALLED, Stage.COPYING
        try:
            if not self.path.exists():
                return None
            path = self.target.path / name
            rename(self.path, path)
            if installed:
                sync_directory(self.target.path)
            return path
        finally:
            if installed:
                with contextlib.suppress(OSError):  # The note does no harm while both are seen.
                    move_record.remove(self.source.directory)

    def opened(self) -> PartitionLog:
        """The copy. Raises KafkaError before there is one."""
        if self.copy is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.tp} has no copy")
        return self.copy
