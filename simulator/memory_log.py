"""A log that keeps its records in memory and knows which of them are on disk.

It stands for `barnabas_broker.log.partition_log.PartitionLog` where thousands of schedules are
run: the same offsets, epochs and rules, without files. What a power cut takes is anything from the
durable end on; what a kill takes is nothing, since the broker writes without buffers of its own.
"""

from dataclasses import dataclass
from random import Random

from barnabas_broker.log.epochs import LeaderEpochs
from barnabas_kafka.ids import NO_EPOCH


@dataclass(frozen=True, slots=True)
class Record:
    """One record: who led when it was written (-1: its format does not say), and what it says."""

    epoch: int
    value: str


class MemoryLog:
    """See the module's docstring."""

    __slots__ = (
        "_offsets",
        "_sequence",
        "checkpointed",
        "durable_offset",
        "epochs",
        "high_watermark",
        "keeps_epochs",
        "records",
    )

    def __init__(self, *, keeps_epochs: bool = True) -> None:
        """Without epochs it is a log of message format 0 or 1."""
        self.records: list[Record] = []
        self.epochs = LeaderEpochs()
        self.keeps_epochs = keeps_epochs
        self.high_watermark = 0
        self.durable_offset = 0
        # The producer state: where each record is, and the last of each producer.
        self._offsets: dict[str, int] = {}
        self._sequence: dict[str, int] = {}
        #: the high watermark that a restart finds
        self.checkpointed = 0

    @property
    def log_start_offset(self) -> int:
        """Nothing is ever deleted."""
        return 0

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return len(self.records)

    @property
    def latest_epoch(self) -> int:
        """The newest epoch in the log or assigned to it; -1 without."""
        return self.epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetsForLeaderEpoch answers; (-1, -1) when unknown."""
        return self.epochs.end_offset_for(epoch, len(self.records))

    def assign_epoch_start(self, epoch: int) -> None:
        """A new leader epoch begins at the log's end."""
        if self.keeps_epochs and epoch > self.epochs.latest:
            self.epochs.assign(epoch, len(self.records))

    def append(self, epoch: int, value: str) -> int:
        """Append as leader; returns the record's offset."""
        self.assign_epoch_start(epoch)
        self._add(Record(epoch if self.keeps_epochs else NO_EPOCH, value))
        return len(self.records) - 1

    def _add(self, record: Record) -> None:
        self._offsets[record.value] = len(self.records)
        producer, _, sequence = record.value.partition(".")
        self._sequence[producer] = int(sequence) if sequence else 0
        self.records.append(record)

    def find(self, value: str) -> int | None:
        """Where a record is that a producer sends again."""
        return self._offsets.get(value)

    def refusal(self, value: str) -> str:
        """Why it is not the next record of its producer; empty where it is."""
        producer, _, sequence = value.partition(".")
        follows = int(sequence) == self._sequence.get(producer, -1) + 1
        return "" if follows else "OUT_OF_ORDER_SEQUENCE_NUMBER"

    def read(self, offset: int, count: int) -> list[Record]:
        """Up to `count` records from `offset` on."""
        return self.records[offset : offset + count]

    def append_fetched(self, records: list[Record], *, max_epoch: int) -> None:
        """Append as follower, up to the first record of a newer epoch."""
        for record in records:
            if record.epoch > max_epoch:
                return
            self.assign_epoch_start(record.epoch)
            self._add(record)

    def take_marks(self, high_watermark: int) -> None:
        """Move the high watermark as a follower does: to the leader's, within its own log."""
        self.high_watermark = min(high_watermark, len(self.records))

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from `offset` on; what is left and what is gone is then on disk."""
        self.epochs.truncate_from_end(min(offset, len(self.records)))
        if offset >= len(self.records):
            return
        kept = self.records[:offset]
        self.records, self._offsets, self._sequence = [], {}, {}
        for record in kept:
            self._add(record)
        self.high_watermark = min(self.high_watermark, offset)
        self.durable_offset = min(self.durable_offset, offset)

    def flush(self) -> None:
        """Sync the log to disk."""
        self.durable_offset = len(self.records)

    def checkpoint(self) -> None:
        """Write the high watermark down."""
        self.checkpointed = self.high_watermark

    def shut_down(self) -> None:
        """Close in good order."""
        self.flush()
        self.checkpoint()

    def restart(self, chance: Random, *, power_lost: bool) -> None:
        """What a new process finds: all that was written, or after a power loss any part of it."""
        if power_lost and self.durable_offset < len(self.records):
            self.truncate_to(chance.randint(self.durable_offset, len(self.records)))
        self.high_watermark = min(self.checkpointed, len(self.records))

    def close(self) -> None:
        """Nothing is held."""
