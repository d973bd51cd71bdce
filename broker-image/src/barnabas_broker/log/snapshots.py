"""The producer snapshots of a partition directory: listed, written, read, removed."""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections.abc import Iterable
from pathlib import Path

from barnabas_broker.log import producer_snapshot
from barnabas_broker.log.files import replace_file
from barnabas_broker.log.names import DELETED, SNAPSHOT, offset_of, segment_file
from barnabas_broker.log.producer_snapshot import CorruptSnapshotError
from barnabas_broker.log.producer_state import ProducerEntry

_log = logging.getLogger(__name__)


class Snapshots:
    """Snapshot files by offset, in ascending order."""

    __slots__ = ("_offsets", "directory")

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._offsets = sorted(
            offset
            for path in directory.glob(f"*{SNAPSHOT}")
            if (offset := offset_of(path.name)) is not None
        )

    @property
    def offsets(self) -> list[int]:
        return list(self._offsets)

    @property
    def latest(self) -> int | None:
        return self._offsets[-1] if self._offsets else None

    def path(self, offset: int) -> Path:
        return segment_file(self.directory, offset, SNAPSHOT)

    def write(self, offset: int, entries: Iterable[ProducerEntry]) -> Path:
        """Write a snapshot complete up to ``offset``; a flush makes it durable."""
        path = self.path(offset)
        replace_file(path, producer_snapshot.encode(entries), durable=False)
        if offset not in self._offsets:
            insort(self._offsets, offset)
        return path

    def newest_at_most(self, offset: int) -> tuple[int, list[ProducerEntry]] | None:
        """The newest readable snapshot at or below ``offset``; unreadable ones are removed."""
        for candidate in reversed([known for known in self._offsets if known <= offset]):
            try:
                return candidate, producer_snapshot.decode(self.path(candidate).read_bytes())
            except CorruptSnapshotError as error:
                _log.warning("removing producer snapshot %s: %s", self.path(candidate), error)
                self.remove(candidate)
        return None

    def remove(self, offset: int) -> None:
        self._offsets.remove(offset)
        self.path(offset).unlink(missing_ok=True)

    def remove_outside(self, start: int, end: int) -> None:
        """Remove snapshots at or below ``start`` and above ``end``: none of them can serve."""
        for offset in self.offsets:
            if offset <= start or offset > end:
                self.remove(offset)

    def remove_all(self) -> None:
        for offset in self.offsets:
            self.remove(offset)

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Keep those that begin a segment, and the newest of all."""
        kept = set(base_offsets)
        for offset in self.offsets[:-1]:
            if offset not in kept:
                self.remove(offset)

    def mark_deleted(self, offset: int) -> list[Path]:
        """Rename the snapshot of a segment that is being deleted; return what to unlink later."""
        slot = bisect_left(self._offsets, offset)
        if slot == len(self._offsets) or self._offsets[slot] != offset:
            return []
        del self._offsets[slot]
        path = self.path(offset)
        target = path.with_name(path.name + DELETED)
        path.rename(target)
        return [target]
