"""The transaction coordinator: the shards of transactional ids in their runtime, and their ends.

Decisions are the core's (`shard`); logs, waiting clients and timers are the runtime's
(`coordinator.runtime`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, cast

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator import runtime
from barnabas_broker.coordinator.compatibility import may_write_newest
from barnabas_broker.coordinator.memory import Account
from barnabas_broker.coordinator.results import Producer, Waiter
from barnabas_broker.coordinator.runtime import Held, Runtime, Unloaded
from barnabas_broker.coordinator.transaction import records
from barnabas_broker.coordinator.transaction.ending import Ending
from barnabas_broker.coordinator.transaction.limits import Limits
from barnabas_broker.coordinator.transaction.markers import Elsewhere, MarkerWriter
from barnabas_broker.coordinator.transaction.records import TransactionRecord
from barnabas_broker.coordinator.transaction.shard import (
    CoordinatorResult,
    End,
    Granted,
    Initialisation,
    Shard,
    WriteMarkers,
)
from barnabas_broker.coordinator.transaction.transaction import (
    EPOCH_PER_TRANSACTION,
    Transaction,
)
from barnabas_broker.replica.partition import Partition
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import NO_PRODUCER_ID, TopicPartition
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Key

TRANSACTIONS_TOPIC = "__transaction_state"

WRITE_TIMEOUT_MS = 30_000
"""How long an answer waits for its record to count; Kafka waits as long as its producer said."""

Answer = ErrorCode | asyncio.Future[ErrorCode]


class TransactionCoordinator:
    """All transactional ids that this broker coordinates. Lives on the event loop.

    `leader` gives the partition if it is led here, and raises KafkaError otherwise; `exists` says
    whether the cluster has a partition; `new_producer_id` gives an unused id;
    `memory_bytes` is how much memory the broker may use.
    """

    def __init__(
        self,
        *,
        leader: Callable[[TopicPartition], Partition],
        exists: Callable[[TopicPartition], bool],
        settings: Callable[[], BrokerSettings],
        new_producer_id: Callable[[], Awaitable[int]],
        markers: MarkerWriter,
        clock_ms: Callable[[], int],
        elsewhere: Elsewhere | None = None,
        memory_bytes: int = 4 << 30,
    ) -> None:
        self._memory_bytes = memory_bytes
        self._in_use = Account()
        self._exists = exists
        self._settings = settings
        self._new_producer_id = new_producer_id
        self._markers = markers
        self._elsewhere = elsewhere
        self._clock_ms = clock_ms
        self._loop = asyncio.get_running_loop()
        self._limits = Limits.from_settings(settings(), memory_bytes=memory_bytes)
        self._sweeps: dict[str, asyncio.TimerHandle] = {}
        self._runtime: Runtime[Shard, TransactionRecord] = Runtime(
            TRANSACTIONS_TOPIC,
            records.KIND,
            leader=leader,
            limits=lambda: runtime.Limits(
                load_buffer_bytes=settings()[keys.TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE],
                timeout_ms=WRITE_TIMEOUT_MS,
            ),
            new_shard=lambda: Shard(self._limits, self._in_use),
            carry_out=self._carry_out,
            clock_ms=clock_ms,
        )

    # --- life

    def start(self) -> None:
        """Begin to abort what is open for too long, and to forget ids that are not used."""
        self._sweep_every(
            keys.TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
            lambda: self._runtime.sweep(lambda shard, now_ms: shard.abort_timed_out(now_ms)),
        )
        self._sweep_every(
            keys.TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
            lambda: self._runtime.sweep(lambda shard, now_ms: shard.expire(now_ms)),
        )

    def stop(self) -> None:
        """Answer all waiting clients with an error, and do nothing more."""
        for sweep in self._sweeps.values():
            sweep.cancel()
        self._runtime.stop()

    def on_image(self, new: MetadataImage) -> None:
        """Take up and give up shards as leadership comes and goes.

        To be called when the replicas have done what the image says.
        """
        settings, before = self._settings(), self._limits.protocol
        protocol = EPOCH_PER_TRANSACTION if may_write_newest(settings, new) else 0
        self._limits = Limits.from_settings(
            settings, protocol=protocol, memory_bytes=self._memory_bytes
        )
        for shard in self._runtime.all_shards:
            shard.limits = self._limits
        self._runtime.on_image(new)
        if protocol < before:
            self._runtime.sweep(lambda shard, now_ms: shard.plainly(now_ms))

    @property
    def protocol(self) -> int:
        """The newest transaction protocol in force: 0, or 2 where all live brokers can read it."""
        return self._limits.protocol

    # --- requests

    def partition_of(self, transactional_id: str) -> int | None:
        """The partition whose leader coordinates an id; None while the topic is missing."""
        return self._runtime.partition_of(transactional_id)

    async def initialise(self, request: Initialisation) -> Granted:
        """Give a producer its id and epoch.

        Raises KafkaError as `Runtime.ask` does, and CoordinationError where no producer id can be
        had.
        """
        transactional_id = request.transactional_id
        fresh_id = NO_PRODUCER_ID
        if self._runtime.held(transactional_id).shard.wants_producer_id(request):
            fresh_id = await self._new_producer_id()

        def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
            return shard.initialise(request, waiter, now_ms, fresh_id=fresh_id)

        answer = self._runtime.ask(transactional_id, step)
        granted: Granted = await answer if isinstance(answer, asyncio.Future) else answer
        return granted

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        *,
        protocol: int = 0,
    ) -> Answer:
        """Make partitions part of a transaction; raises as `Runtime.ask` does.

        `protocol` is the one that the producer speaks.
        """

        def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
            return shard.add_partitions(
                transactional_id, producer, partitions, waiter, now_ms, protocol=protocol
            )

        answer: Answer = self._runtime.ask(transactional_id, step)
        return answer

    def verify(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Whether partitions are part of a transaction; raises as `Runtime.ask` does."""
        shard = self._runtime.held(transactional_id).shard
        return shard.verify(transactional_id, producer, partitions)

    def end(self, transactional_id: str, producer: Producer, *, commit: bool) -> Answer:
        """Commit or abort a transaction; raises as `Runtime.ask` does."""

        def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
            return shard.end(transactional_id, producer, waiter, now_ms, commit=commit)

        answer: Answer = self._runtime.ask(transactional_id, step)
        return answer

    async def end_with_bump(self, request: End) -> Granted:
        """Commit or abort, and give the producer its next epoch; raises as `initialise` does."""
        fresh_id = NO_PRODUCER_ID
        if self._runtime.held(request.transactional_id).shard.wants_id_to_end(request):
            fresh_id = await self._new_producer_id()

        def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
            return shard.end_with_bump(request, waiter, now_ms, fresh_id=fresh_id)

        answer = self._runtime.ask(request.transactional_id, step)
        granted: Granted = await answer if isinstance(answer, asyncio.Future) else answer
        return granted

    def transaction(self, transactional_id: str) -> Transaction | None:
        """A transaction to read, None if there is none; raises as `Runtime.ask` does."""
        return self._runtime.held(transactional_id).shard.transactions.get(transactional_id)

    def transactions(self) -> Sequence[Transaction]:
        """All that are coordinated here, as far as they are loaded."""
        return [each for shard in self._runtime.shards for each in shard.transactions.values()]

    @property
    def bytes_in_use(self) -> int:
        """How much memory the transactional ids take, as it is counted."""
        return self._in_use.held

    @property
    def loading(self) -> bool:
        """Whether some transactions are still being read back."""
        return self._runtime.loading

    @property
    def unloaded(self) -> Sequence[Unloaded]:
        """The partitions that are still being loaded, and why an attempt failed."""
        return self._runtime.unloaded

    # --- ends

    def _carry_out(self, held: Held[Shard], order: object) -> None:
        markers = cast(WriteMarkers, order)  # The core gives no other order.
        Ending(
            markers,
            held.partition.leader_epoch,
            self._markers,
            elsewhere=self._elsewhere,
            exists=self._exists,
            complete=lambda: self._runtime.perform(
                held, held.shard.complete(markers, self._clock_ms())
            ),
            goes_on=lambda: self._runtime.is_held(held),
        ).begin()

    def _sweep_every(self, interval: Key[int], work: Callable[[], Any]) -> None:
        def result() -> None:
            self._sweep_every(interval, work)
            work()

        delay_ms = self._settings()[interval]
        self._sweeps[interval.name] = self._loop.call_later(delay_ms / 1000, result)
