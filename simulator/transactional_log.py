"""A log in memory with the product's own producer state, and what read_committed sees of it.

Values: `d:producer id:epoch:sequence:transaction` is a record, `m:producer id:epoch:coordinator
epoch:1 for a commit:protocol` a marker. Anything else is of nobody.
"""

from random import Random

from barnabas_broker.coordinator.transaction.transaction import EPOCH_PER_TRANSACTION
from barnabas_broker.log.producer_state import EndMarker, Origin, ProducerBatch, ProducerState
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.errors import KafkaError
from simulator.memory_log import MemoryLog, Record


def producer_of(value: str) -> tuple[int, int]:
    """The producer id and epoch in a value."""
    _, producer_id, epoch, *_ = value.split(":")
    return int(producer_id), int(epoch)


def _batch(value: str, offset: int) -> ProducerBatch:
    producer_id, epoch = producer_of(value)
    kind, _, _, number, what, *_ = value.split(":")
    marker = EndMarker(what == "1", int(number)) if kind == "m" else None
    sequence = -1 if marker else int(number)
    return ProducerBatch(
        producer_id, epoch, sequence, sequence, offset, offset, 0, True, marker is not None, marker
    )


class TransactionalLog(MemoryLog):
    """See the module's docstring."""

    def __init__(self) -> None:
        self._begin()
        super().__init__()

    def _begin(self) -> None:
        self.state = ProducerState()
        self.aborted: list[AbortedTransaction] = []

    def _add(self, record: Record) -> None:
        if record.value.startswith(("d:", "m:")):
            batch = _batch(record.value, len(self.records))
            plan = self.state.check([batch], Origin.REPLICATION)
            self.aborted += self.state.commit(plan, batch.last_offset + 1)
        super()._add(record)

    def find(self, value: str) -> int | None:
        """Where a record is that a producer sends again; a marker is written again."""
        if not value.startswith("d:"):
            return None
        original = self.state.find_duplicate(_batch(value, len(self.records)))
        return None if original is None else original.last_offset

    def refusal(self, value: str) -> str:
        """Why a leader does not take it, by the name of the error; empty where it does."""
        if not value.startswith(("d:", "m:")):
            return ""
        origin = Origin.CLIENT
        if value.startswith("m:"):
            origin = Origin.COORDINATOR
            protocol = int(value.rpartition(":")[2])
            # As `coordinator.transaction.markers` has it.
            if protocol >= EPOCH_PER_TRANSACTION and self.is_open(value):
                return "INVALID_PRODUCER_EPOCH"
        try:
            self.state.check([_batch(value, len(self.records))], origin)
        except KafkaError as error:
            return error.code.name
        return ""

    def is_open(self, value: str) -> bool:
        """Whether the producer of a value has a transaction open here, in its epoch."""
        return self.state.has_ongoing_transaction(*producer_of(value))

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from `offset` on; the producer state is then read back."""
        if offset < len(self.records):
            self._begin()
        super().truncate_to(offset)

    def restart(self, chance: Random, *, power_lost: bool) -> None:
        """What a new process finds; it knows of its producers only what the log says."""
        super().restart(chance, power_lost=power_lost)
        kept, self.records = self.records, []
        self._begin()
        for record in kept:
            self._add(record)

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed may see."""
        self.state.advance_high_watermark(self.high_watermark)
        unstable = self.state.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def committed_between(self, start: int, end: int) -> list[str]:
        """The values that a consumer keeps of these offsets, by the list of the aborted."""
        return [
            record.value
            for offset, record in enumerate(self.records[start:end], start)
            if record.value.startswith("d:") and not self._is_aborted(record.value, offset)
        ]

    def _is_aborted(self, value: str, offset: int) -> bool:
        producer_id, _ = producer_of(value)
        return any(
            it.producer_id == producer_id and it.first_offset <= offset < it.last_offset
            for it in self.aborted
        )
