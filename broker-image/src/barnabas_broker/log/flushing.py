"""The work of one flush, shaped for a thread.

Order matters after a power failure: directory entries and side files first, the log next, and
only then may the recovery point pass it. Nothing here touches the state of a log: the plan holds
descriptors of the files it syncs, so whatever the event loop does to the segments meanwhile, the
right bytes are synced. What a plan was to sync stays unflushed until it has succeeded.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.files import DataFile, SyncError, sync_directory, sync_file
from barnabas_broker.log.health import DirectoryHealth
from barnabas_broker.log.segment import Segment

NONE_SEALED: Final = 1 << 63
"""An offset above all others."""


class Changes(NamedTuple):
    """What a plan took over; the fields are those of `Unflushed`."""

    names: frozenset[str]
    directory_changed: bool
    segments_changed: bool
    sealed: int
    created: bool
    rolled: bool


@dataclass(slots=True, kw_only=True, eq=False)
class FlushPlan:
    """Everything below ``up_to`` is durable once ``run`` has returned without an ``error``.

    ``generation`` counts the log's truncations: a plan made before one proves nothing after it.
    """

    up_to: int
    generation: int
    files: Sequence[DataFile]
    paths: Sequence[Path] = ()
    directory: Path | None = None
    parent: Path | None = None
    error: OSError | None = None
    #: of the directory; a failed sync is reported here: who waits for it may have been cancelled
    health: DirectoryHealth | None = None
    #: what is unflushed again unless this succeeds
    changes: Changes | None = None
    #: base offset of the segment whose name is durable once a commit has succeeded
    base_offset: int = -1

    def run(self) -> None:
        """Sync everything. Blocks; touches nothing but the plan itself and the health.

        An error is kept for the log to read. It is not raised, so that no caller tries again: a
        sync that failed may have dropped the pages, and the next one would then say all is well.
        """
        try:
            self._sync()
        except OSError as error:
            self.error = error
            if isinstance(error, SyncError) and self.health is not None:
                self.health.failed(error)
        except Exception as error:  # The thread serves other logs; nothing is known to be durable.
            self.error = OSError(errno.EIO, str(refusal(error, "Sync", [*self.files, *self.paths])))

    def _sync(self) -> None:
        for path in self.paths:
            sync_file(path)
        for file in self.files:
            file.sync()
        if self.directory is not None:
            with suppress(FileNotFoundError):  # The partition was deleted meanwhile.
                sync_directory(self.directory)
        if self.parent is not None:
            sync_directory(self.parent)


class Unflushed:
    """What a log has changed on disk and not flushed, beside the bytes of its segments."""

    __slots__ = (
        "committed_base",
        "created",
        "directory_changed",
        "flushed_ms",
        "generation",
        "names",
        "planned",
        "rolled",
        "sealed",
        "segments_changed",
    )

    def __init__(self) -> None:
        #: side files in the log's directory, written since the last plan; names, because an idle
        #: partition keeps them for long and each path would take 400 bytes
        self.names: set[str] = set()
        #: files were created, renamed or removed since the last plan
        self.directory_changed = False
        #: segments were made, replaced, cut or sealed since the last plan
        self.segments_changed = False
        #: base offset of the first segment that a roll has sealed since the last plan: the whole of
        #: it may lie below the recovery point
        self.sealed = NONE_SEALED
        #: the directory itself was made since the last plan
        self.created = False
        #: a segment was rolled since the last plan
        self.rolled = False
        #: what the last plan took over, until that has succeeded
        self.planned: Changes | None = None
        #: truncations so far, those that failed half-way among them
        self.generation = 0
        #: base offset of the last segment whose name is known to be durable
        self.committed_base = -1
        #: when the last flush ended
        self.flushed_ms = 0

    @property
    def anything(self) -> bool:
        """Whether a plan has something to sync though no record is unflushed."""
        return bool(self.names) or self.directory_changed or self.segments_changed or self.created

    def is_due(self, messages: int, config: LogConfig, now_ms: int) -> bool:
        """True when ``messages`` unflushed ones are too many, too old, or a segment was rolled."""
        return messages > 0 and (
            self.rolled
            or messages >= config.flush_messages
            or now_ms - self.flushed_ms >= config.flush_ms
        )

    def side_files(self, directory: Path) -> list[Path]:
        """Where the side files are that were written since the last plan."""
        return [directory / name for name in sorted(self.names)]

    def plan(self, segments: Sequence[Segment], directory: Path, *, up_to: int) -> FlushPlan:
        """A plan for ``segments``, their indexes and the side files. Raises OSError."""
        for segment in segments:
            segment.write_indexes()
        indexes = [
            index.path
            for segment in segments
            for index in (segment.offsets, segment.times, segment.aborted)
        ]
        plan = FlushPlan(
            up_to=up_to,
            generation=self.generation,
            files=[segment.file for segment in segments],
            paths=[*indexes, *self.side_files(directory)],
            directory=directory if self.directory_changed else None,
            parent=directory.parent if self.created else None,
            changes=Changes(
                frozenset(self.names),
                self.directory_changed,
                self.segments_changed,
                self.sealed,
                self.created,
                self.rolled,
            ),
        )
        self.names = set()
        self.directory_changed = self.segments_changed = self.created = self.rolled = False
        self.sealed = NONE_SEALED
        self.planned = plan.changes
        return plan

    def succeeded(self, plan: FlushPlan) -> None:
        """Forget what ``plan`` took over, unless a later one has taken it over again."""
        if self.planned is plan.changes:
            self.planned = None

    def reclaim(self) -> None:
        """Take back what the last plan took over, if it has failed, or may never run."""
        planned, self.planned = self.planned, None
        if planned is None:
            return
        self.names |= planned.names
        self.directory_changed |= planned.directory_changed
        self.segments_changed |= planned.segments_changed
        self.seal(planned.sealed)
        self.created |= planned.created
        self.rolled |= planned.rolled

    def seal(self, base_offset: int) -> None:
        """Note that a roll has sealed the segment at ``base_offset``."""
        self.sealed = min(self.sealed, base_offset)

    def commit_plan(self, segments: Sequence[Segment], directory: Path, *, up_to: int) -> FlushPlan:
        """A plan for the bytes of ``segments`` up to the active one, and for names that are new."""
        plan = FlushPlan(
            up_to=up_to, generation=self.generation, files=[segment.file for segment in segments]
        )
        active_base = segments[-1].base_offset
        if self.committed_base != active_base:
            # A name must not become durable before the content of its file.
            plan.paths = self.side_files(directory)
            plan.directory = directory
            plan.parent = directory.parent if self.committed_base < 0 else None
        plan.base_offset = active_base
        return plan
