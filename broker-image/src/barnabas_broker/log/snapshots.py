"""The producer snapshots of a partition directory: listed, written, read, removed."""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections.abc import Iterable
from pathlib import Path

from barnabas_broker.log import producer_snapshot
from barnabas_broker.log.files import add_suffix, read_file, remove_file, replace_file
from barnabas_broker.log.names import DELETED, SNAPSHOT, offset_of, segment_file
from barnabas_broker.log.producer_snapshot import CorruptSnapshotError
from barnabas_broker.log.producer_state import ProducerEntry

_log = logging.getLogger(__name__)


class Snapshots:
    """Snapshot files by offset, in ascending order."""

    __slots__ = ("_offsets", "directory")

    def __init__(self, directory: Path, names: Iterable[str]) -> None:
        """``names`` are those in the directory, of any log."""
        self.directory = directory
        self._offsets = sorted(
            offset
            for name in names
            if name.endswith(SNAPSHOT) and (offset := offset_of(name)) is not None
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
                return candidate, producer_snapshot.decode(read_file(self.path(candidate)))
            except CorruptSnapshotError as error:
                _log.warning(
                    "Removing malformed producer snapshot: %s: %s", self.path(candidate), error
                )
                self.remove(candidate)
        return None

    def remove(self, offset: int) -> None:
        self._offsets.remove(offset)
        remove_file(self.path(offset))

    def remove_at_most(self, start: int) -> None:
        """Remove those at or below the log start: there is nothing before it to know of."""
        for offset in self.offsets:
            if offset <= start:
                self.remove(offset)

    def remove_above(self, offset: int) -> bool:
        """Remove those that know of more than the log will have; False when there is none."""
        surplus = [known for known in self._offsets if known > offset]
        for known in reversed(surplus):
            self.remove(known)
        return bool(surplus)

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
        removed = add_suffix([self.path(offset)], DELETED)
        del self._offsets[slot]
        return removed
