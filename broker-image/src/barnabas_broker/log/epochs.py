"""The leader epochs of one log, and the start offset of each.

Decides, for the log, which epoch an offset was written under and where an epoch ended; that is
the base of a follower's truncation and a consumer's fencing (KIP-101, KIP-279; Apache Kafka's
LeaderEpochFileCache).

Invariants: epochs and start offsets both grow strictly from entry to entry; the first entry
starts at or below the log start offset unless older data carries no epoch; nothing starts above
the log end offset. Does not know files: the log writes ``entries`` to leader-epoch-checkpoint
whenever a method returns True.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from barnabas_broker.invariants import violated

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    """Leader epoch ``epoch`` begins at ``start_offset``."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """The list of epochs with its rules; ``latest`` is -1 when nothing is known."""

    __slots__ = ("_entries", "latest")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self._entries: list[EpochEntry] = []
        self.latest = UNDEFINED_EPOCH
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    @property
    def entries(self) -> list[EpochEntry]:
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that ``epoch`` begins at ``start_offset``; entries it contradicts go.

        True when something changed. Raises ValueError for negative numbers.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} cannot begin at offset {start_offset}")
        entries = self._entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self.latest = epoch
        assert len(entries) == 1 or entries[-2].epoch < epoch, violated("leader epochs grow")
        assert len(entries) == 1 or entries[-2].start_offset < start_offset, violated(
            "a leader epoch starts above the one before"
        )
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset) for a follower or consumer that was last at ``epoch``.

        The answer names the greatest known epoch at or below the one asked for; (-1, -1) when
        the epoch is undefined or newer than any known.
        """
        entries = self._entries
        if not entries or epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        after = bisect_right(entries, epoch, key=_epoch_of)
        assert after < len(entries), violated("some epoch follows one below the latest")
        floor = entries[after - 1].epoch if after else epoch
        assert floor <= epoch < entries[after].epoch, violated("leader epochs are in order")
        return floor, entries[after].start_offset

    def epoch_at(self, offset: int) -> int:
        """The epoch ``offset`` was written under; -1 when no entry reaches back to it."""
        slot = bisect_right(self._entries, offset, key=_start_of) - 1
        return self._entries[slot].epoch if slot >= 0 else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop epochs that begin at or above the new log end."""
        changed = self._keep(sum(entry.start_offset < end_offset for entry in self._entries))
        assert not self._entries or self._entries[-1].start_offset < end_offset, violated(
            "no leader epoch starts at or above the log end"
        )
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop epochs that ended below the new log start; the one across it now begins there."""
        covered = bisect_right(self._entries, start_offset, key=_start_of)
        if not covered or (covered == 1 and self._entries[0].start_offset == start_offset):
            return False
        first = EpochEntry(self._entries[covered - 1].epoch, start_offset)
        self._entries[:covered] = [first]
        assert self._entries[-1].epoch == self.latest, violated("the latest epoch is the last one")
        assert len(self._entries) == 1 or self._entries[1].start_offset > start_offset, violated(
            "a leader epoch starts above the one before"
        )
        return True

    def clear(self) -> bool:
        return self._keep(0)

    def _keep(self, count: int) -> bool:
        changed = count < len(self._entries)
        assert count <= len(self._entries), violated("truncation adds no leader epochs")
        del self._entries[count:]
        self.latest = self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH
        return changed


def _epoch_of(entry: EpochEntry) -> int:
    return entry.epoch


def _start_of(entry: EpochEntry) -> int:
    return entry.start_offset
