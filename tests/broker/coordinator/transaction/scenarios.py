"""A shard of transactional ids, a clock that only scenarios move, and a log that may fail.

What the product's shell does with a turn is done here in the same order: records are replayed,
then answers are handed out and orders taken down. `fail_writes` makes every append fail.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.limits import Limits
from barnabas_broker.coordinator.transaction.records import TransactionRecord
from barnabas_broker.coordinator.transaction.shard import (
    NO_PRODUCER,
    CoordinatorResult,
    End,
    Granted,
    Initialisation,
    Shard,
    WriteMarkers,
)
from barnabas_broker.coordinator.transaction.transaction import Transaction
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition

LIMITS = Limits(timeout_max_ms=60_000, expiration_ms=1_000_000)
LIMITS_2 = replace(LIMITS, protocol=2)
TIMEOUT_MS = 10_000
ID = "orders"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Scenario:
    """One transactional id's life, with the first or the second transaction protocol in force."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.now_ms = 1_000_000
        self.limits = limits
        self.shard = Shard(limits)
        self.written: list[TransactionRecord] = []
        self.orders: list[WriteMarkers] = []
        self.fail_writes: ErrorCode | None = None
        self.next_id = 7

    @property
    def transaction(self) -> Transaction:
        return self.shard.transactions[ID]

    @property
    def state(self) -> str:
        return self.transaction.state.value

    def perform(self, result: CoordinatorResult) -> Any:
        """The answer, None where there is none."""
        if result.records and self.fail_writes is not None:
            result = result.refused(self.fail_writes)
        for record in result.records:
            self.shard.replay(record, result.now_ms)
        self.written += result.records
        for order in result.orders:
            assert isinstance(order, WriteMarkers)
            self.orders.append(order)
        assert len(result.answers) <= 1
        return result.answers[0][1] if result.answers else None

    def init(self, expected: Producer = NO_PRODUCER, timeout_ms: int = TIMEOUT_MS) -> Granted:
        """InitProducerId."""
        request = Initialisation(transactional_id=ID, timeout_ms=timeout_ms, expected=expected)
        fresh_id = -1
        if self.shard.wants_producer_id(request):
            fresh_id, self.next_id = self.next_id, self.next_id + 1
        result = self.shard.initialise(request, "init", self.now_ms, fresh_id=fresh_id)
        granted: Granted = self.perform(result)
        return granted

    def begun(self) -> Producer:
        """A producer that is initialised."""
        granted = self.init()
        assert granted.code is ErrorCode.NONE
        return granted.producer

    def add(self, producer: Producer, *partitions: TopicPartition) -> ErrorCode:
        """AddPartitionsToTxn."""
        result = self.shard.add_partitions(
            ID, producer, partitions, "add", self.now_ms, protocol=self.limits.protocol
        )
        code: ErrorCode = self.perform(result)
        return code

    def end(self, producer: Producer, *, commit: bool = True) -> ErrorCode:
        """EndTxn."""
        result = self.shard.end(ID, producer, "end", self.now_ms, commit=commit)
        code: ErrorCode = self.perform(result)
        return code

    def bump(self, producer: Producer, *, commit: bool = True) -> Granted:
        """EndTxn in protocol 2."""
        request = End(ID, producer, commit)
        fresh_id = -1
        if self.shard.wants_id_to_end(request):
            fresh_id, self.next_id = self.next_id, self.next_id + 1
        result = self.shard.end_with_bump(request, "end", self.now_ms, fresh_id=fresh_id)
        granted: Granted = self.perform(result)
        return granted

    def write_markers(self) -> WriteMarkers:
        """Carry out the oldest order."""
        order = self.orders.pop(0)
        self.perform(self.shard.complete(order, self.now_ms))
        return order

    def sweep(self, turns: Iterable[CoordinatorResult]) -> int:
        """Perform turns; how many there were."""
        return len([self.perform(result) for result in turns])

    def restart(self) -> None:
        """Read everything back from the log."""
        self.shard = Shard(self.limits)
        self.orders = []
        for record in self.written:
            self.shard.replay(record, self.now_ms)
        self.sweep(self.shard.loaded(self.now_ms))
