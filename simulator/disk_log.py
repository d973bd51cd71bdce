"""The broker's real log on a modelled disk, in the place of a `MemoryLog`.

Records are real batches of real producers in real segments; a kill leaves the page cache, a power
cut what `tests.broker.log.images` says is left: files and names that were not synced lose any part
of themselves. What the log should hold is kept beside it, and both must agree at every step.
"""

import os
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Final

from barnabas_broker.log import files
from barnabas_broker.log.config import LogConfig
from barnabas_kafka.records import batch as record_batches
from barnabas_kafka.records.builder import build_batch
from simulator.memory_log import MemoryLog, Record
from tests.broker.log.disk import Disk
from tests.broker.log.images import Loss, Machine, write_tree
from tests.broker.log.samples import NOW, TP, open_directories, validated

SMALL: Final = LogConfig(segment_bytes=2_000, index_interval_bytes=300, segment_index_bytes=480)
_BATCH_BYTES: Final = 90
_LOSSES: Final = tuple(loss for loss in Loss if loss is not Loss.KILL)


class DiskLog(MemoryLog):
    """See the module's docstring; `close` removes its files."""

    __slots__ = ("_disk", "_lives", "_logs", "_root", "log")

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="simulated-disk-"))
        self._lives = 0
        (self._root / "0").mkdir()
        self._disk = Disk(self._root / "0")
        self._open()
        super().__init__()

    def _open(self) -> None:
        files.system = self._disk
        self._logs = open_directories(self._disk.root / "data", config=SMALL)
        if TP not in self._logs.logs:
            self._logs.create(TP, SMALL, None, NOW)
        self.log = self._logs.logs[TP]

    # --- what a log answers ------------------------------------------------------------------

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        assert self.log.log_end_offset == len(self.records)
        return len(self.records)

    @property
    def latest_epoch(self) -> int:
        """The newest epoch in the log or assigned to it."""
        assert self.log.latest_epoch == self.epochs.latest
        return self.epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetsForLeaderEpoch answers; (-1, -1) when unknown."""
        return self.log.end_offset_for_epoch(epoch)

    def read(self, offset: int, count: int) -> bytes:  # type: ignore[override]
        """About `count` batches from `offset` on, as they are stored."""
        found = self.log.read(offset, count * _BATCH_BYTES, upper_bound=self.log.log_end_offset)
        return found.read()

    # --- what is done to it ------------------------------------------------------------------

    def assign_epoch_start(self, epoch: int) -> None:
        """A new leader epoch begins at the log's end."""
        super().assign_epoch_start(epoch)
        files.system = self._disk
        if epoch > self.log.latest_epoch:
            self.log.assign_epoch_start(epoch, self.log.log_end_offset)

    def append(self, epoch: int, value: str) -> int:
        """Append as leader; returns the record's offset."""
        files.system = self._disk
        producer, _, sequence = value.partition(".")
        data = build_batch(
            [(NOW, b"k", value.encode(), ())],
            producer_id=int(producer),
            producer_epoch=0,
            base_sequence=int(sequence),
        )
        info = self.log.append_as_leader(validated(data), leader_epoch=epoch, now_ms=NOW)
        assert not info.duplicate
        super().assign_epoch_start(epoch)
        self._add(Record(epoch, value))
        return info.first_offset

    def append_fetched(self, records: bytes, *, max_epoch: int) -> None:  # type: ignore[override]
        """Append as follower, up to the first batch of a newer epoch."""
        files.system = self._disk
        end = 0
        for position, header in record_batches.headers(records):
            if header.leader_epoch > max_epoch:
                break
            end = position + header.size
        if not end:
            return
        self.log.append_as_follower(records[:end], now_ms=NOW)
        for record in _records_in(records[:end]):
            super().assign_epoch_start(record.epoch)
            self._add(record)

    def take_marks(self, high_watermark: int) -> None:
        """Move the high watermark as a follower does."""
        super().take_marks(high_watermark)
        self.log.advance_high_watermark(self.high_watermark)

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from `offset` on."""
        files.system = self._disk
        self._logs.truncate(TP, offset, now_ms=NOW)
        super().truncate_to(offset)

    def flush(self) -> None:
        """Sync the log to disk."""
        files.system = self._disk
        self.log.flush(now_ms=NOW)
        super().flush()

    def checkpoint(self) -> None:
        """Write recovery point and high watermark down."""
        files.system = self._disk
        self.log.advance_high_watermark(self.high_watermark)
        self._logs.checkpoint()
        super().checkpoint()

    def shut_down(self) -> None:
        """Close in good order."""
        self.flush()
        self.checkpoint()
        self._logs.close(now_ms=NOW)

    # --- what a restart finds ----------------------------------------------------------------

    def restart(self, chance: Random, *, power_lost: bool) -> None:
        """Open it anew after a stop of any kind."""
        files.system = self._disk
        self._logs.close(clean=False)
        if power_lost:
            machine = Machine()
            for effect in self._disk.effects:
                machine.apply(effect)
            names = chance.choice((None, chance.randint(0, 20)))
            tree = machine.image(chance.choice(_LOSSES), names)
            shutil.rmtree(self._disk.root)
            self._lives += 1
            root = self._root / str(self._lives)
            write_tree(tree, root)
            self._disk = Disk(root)
        self._open()
        self._compare(power_lost=power_lost)
        self.high_watermark = self.log.high_watermark

    def _compare(self, *, power_lost: bool) -> None:
        """What is found is what was there, or after a power cut all that was synced of it."""
        end = self.log.log_end_offset
        assert end <= len(self.records)
        assert end >= (self.durable_offset if power_lost else len(self.records))
        found = [
            record
            for segment in self.log.segments
            for record in _records_in(segment.file.read(0, segment.file.size))
        ]
        assert found == self.records[:end]
        kept, self.records, self._offsets, self._sequence = found, [], {}, {}
        for record in kept:
            self._add(record)
        self.durable_offset = end if power_lost else min(self.durable_offset, end)
        self.epochs = type(self.epochs)(self.log.epochs.entries)
        for offset, record in enumerate(self.records):
            assert self.epochs.epoch_at(offset) == record.epoch

    def close(self) -> None:
        """Give up and remove everything."""
        files.system = self._disk
        self._logs.close(clean=False)
        files.system = os
        shutil.rmtree(self._root)


def _records_in(data: bytes) -> list[Record]:
    return [
        Record(header.leader_epoch, (record.value or b"").decode())
        for position, header in record_batches.headers(data)
        for record in record_batches.records(data, position)
    ]
