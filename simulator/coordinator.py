"""The shell around the transaction coordinator's core, and the brokers that hold its partition.

Every decision is `coordinator.transaction.shard`'s; its records are encoded, replicated and read
back as the product does it. What its runtime does (answers and orders wait until records count) and
what `ending` does (markers are written until every partition has its own) is played here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.coordinator.results import Waiter
from barnabas_broker.coordinator.transaction.limits import Limits
from barnabas_broker.coordinator.transaction.records import KIND
from barnabas_broker.coordinator.transaction.shard import CoordinatorResult, Shard, WriteMarkers
from barnabas_broker.coordinator.transaction.transaction import EPOCH_PER_TRANSACTION
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from simulator.broker import Broker
from simulator.network import Reply
from simulator.options import Bugs
from simulator.transactional_log import TransactionalLog

if TYPE_CHECKING:
    from simulator.transactions import Ring, TransactionalWorld

SWEEP_MS = 500
AGAIN_MS = 300

Step = Callable[[Shard, Waiter, int], CoordinatorResult]


def transaction_protocol(bugs: Bugs) -> int:
    """The protocol that producers and coordinators speak."""
    return 0 if bugs.one_epoch_for_all else EPOCH_PER_TRANSACTION


class Coordinator:
    """The shard of one broker, from when it begins to lead until it leads no more."""

    def __init__(self, broker: CoordinatingBroker) -> None:
        self._broker = broker
        bugs = broker.world.options.bugs
        self._forgets = bugs.forget_orders
        limits = Limits(
            timeout_max_ms=60_000, expiration_ms=10**9, protocol=transaction_protocol(bugs)
        )
        self.shard = Shard(limits)
        #: whose orders were not carried out when the epoch ended
        self._undone: list[CoordinatorResult] = []
        for record in broker.log.records:
            key, _, value = record.value.partition(":")[2].partition(":")
            decoded = KIND.decode(bytes.fromhex(key), bytes.fromhex(value.partition(":")[0]))
            assert decoded is not None
            self.shard.replay(decoded, self._now_ms)

    @property
    def _now_ms(self) -> int:
        return self._broker.world.events.now_ms

    @property
    def _is_held(self) -> bool:
        return self._broker.coordinator is self

    def begin(self) -> None:
        """Go on with what was under way."""
        for result in self.shard.loaded(self._now_ms):
            self.perform(result)
        self._broker.later(SWEEP_MS, "sweep", self._sweep)

    def lead_on(self) -> None:
        """A new epoch of the same leader has begun."""
        undone, self._undone = self._undone, []
        for result in undone:
            self._settle(result)

    def ask(self, step: Step, reply: Reply) -> None:
        """Have a step taken."""
        self.perform(step(self.shard, reply, self._now_ms))

    def _sweep(self) -> None:
        if self._is_held:
            self._broker.later(SWEEP_MS, "sweep", self._sweep)
            for result in self.shard.abort_timed_out(self._now_ms):
                self.perform(result)

    # --- results

    def perform(self, result: CoordinatorResult) -> bool:
        """Append the records of a result and send its answers; false where the append failed."""
        broker = self._broker
        appended = True
        for record in result.records:
            code = broker.refuses_writes()
            if code:
                appended = False
                result = result.refused(ErrorCode[code])
                break
            key, value = KIND.encode(record)
            number = broker.log.log_end_offset
            broker.append(f"s:{key.hex()}:{(value or b'').hex()}:{number}")
            self.shard.replay(record, result.now_ms)
        self._settle(result)
        broker.commit()
        return appended

    def _settle(self, result: CoordinatorResult) -> None:
        """Hand out the answers of a result once everything that was appended counts."""
        if not result.answers and not result.orders:
            return
        if self._broker.log.log_end_offset > self._broker.log.high_watermark:
            self._broker.when_counted(lambda error, _: self._counted(result, error))
        else:
            self._hand_out(result)

    def _counted(self, result: CoordinatorResult, error: str) -> None:
        if error:
            for waiter, _ in result.answers:
                cast(Reply, waiter)(ErrorCode.NOT_COORDINATOR)
            result.answers = []
        if not error or error == "NOT_ENOUGH_REPLICAS_AFTER_APPEND":
            self._hand_out(result)
        elif result.orders and not self._forgets:
            self._undone.append(result)

    def _hand_out(self, result: CoordinatorResult) -> None:
        for waiter, response in result.answers:
            cast(Reply, waiter)(response)
        if self._is_held:
            for order in result.orders:
                markers = cast(WriteMarkers, order)
                epoch = self._broker.leading.leader_epoch
                self._write_markers(markers, epoch, set(markers.partitions))

    # --- endings

    def _write_markers(self, order: WriteMarkers, epoch: int, missing: set[TopicPartition]) -> None:
        """Have markers written, until every partition has its own."""
        broker = self._broker
        if not self._is_held:
            return
        if not missing:
            if not self.perform(self.shard.complete(order, self._now_ms)):
                broker.later(AGAIN_MS, "complete-again", self._write_markers, order, epoch, missing)
            return
        producer_id, producer_epoch = order.producer
        outcome = int(order.commit)
        marker = f"m:{producer_id}:{producer_epoch}:{epoch}:{outcome}:{order.protocol}"
        for tp in sorted(missing):
            broker.write_marker(tp, marker, partial(self._on_marker, missing, tp))
        broker.later(AGAIN_MS, "markers-again", self._write_markers, order, epoch, missing)

    @staticmethod
    def _on_marker(missing: set[TopicPartition], tp: TopicPartition, error: str) -> None:
        if error in ("", "INVALID_PRODUCER_EPOCH", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"):
            missing.discard(tp)


class CoordinatingBroker(Broker):
    """A replica of the partition of transactions; its leader coordinates them."""

    world: TransactionalWorld

    def _forget(self) -> None:
        super()._forget()
        self.coordinator: Coordinator | None = None

    def on_leader_and_isr(
        self,
        controller_epoch: int,
        broker_epoch: int,
        state: LeaderAndIsr,
        version: int,
        reply: Reply,
    ) -> None:
        """LeaderAndIsr; who leads no more coordinates no more."""
        super().on_leader_and_isr(controller_epoch, broker_epoch, state, version, reply)
        if not self.leading.leads:
            self.coordinator = None

    def _lead(self, state: PartitionState) -> None:
        super()._lead(state)
        if self.coordinator is None:
            self.coordinator = Coordinator(self)
            self.coordinator.begin()
        else:
            self.coordinator.lead_on()

    def on_ask(self, step: Step, reply: Reply) -> None:
        """A request to the coordinator: `reply(answer)`."""
        if self.coordinator is None:
            reply(ErrorCode.NOT_COORDINATOR)
        else:
            self.coordinator.ask(step, reply)

    def when_counted(self, reply: Reply) -> None:
        """`reply(error, offset)` once all that is in the log counts."""
        offset = self.log.log_end_offset - 1
        value = self.log.records[offset].value
        self._waiting.append((offset, self.leading.leader_epoch, value, reply))

    def write_marker(self, tp: TopicPartition, marker: str, done: Callable[[str], None]) -> None:
        """WriteTxnMarkers to whoever is taken for the leader of a partition."""
        ring = self.world.data[tp.partition]
        target, network = ring.guess_leader(), self.world.network

        def reply(error: str, _offset: int) -> None:
            network.send(target, self.number, "told", done, error)

        self.send(target, "marker", ring.brokers[target].on_produce, marker, reply)


class DataBroker(Broker):
    """A replica of a partition that is written to in transactions."""

    world: Ring

    def on_produce(self, value: str, reply: Reply) -> None:
        """Produce; a transaction that is not open here yet is first announced (KIP-890)."""
        if value.startswith("m:") or self.log.find(value) is not None or self._is_open(value):
            super().on_produce(value, reply)
        elif self.leading.leads:
            self.world.announce(self, value, reply)
        else:
            reply("NOT_LEADER_OR_FOLLOWER", -1)

    def _is_open(self, value: str) -> bool:
        return cast(TransactionalLog, self.log).is_open(value)

    def announced(self, value: str, reply: Reply, code: ErrorCode) -> None:
        """The coordinator has answered."""
        if code is ErrorCode.NONE:
            super().on_produce(value, reply)
        else:
            reply(code.name, -1)

    def commit(self) -> None:
        """Move the high watermark; a consumer reads what is stable then."""
        super().commit()
        if self.leading.leads:
            self.world.read(self)
