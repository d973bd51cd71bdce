"""Clusters with transactions: a coordinator's partition and two of data, each in a ring.

A ring is three brokers with one partition, a ZooKeeper and a controller of their own; they share
the network. Transactional producers write to both data partitions in protocol 2, are lost in the
middle of a transaction, come again, and send what is too late. What a read_committed consumer reads
as the stable end moves is held against what each producer was told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, cast

from barnabas_broker.coordinator.results import Producer as ProducerEpoch
from barnabas_broker.coordinator.results import Waiter
from barnabas_broker.coordinator.transaction.shard import (
    NO_PRODUCER,
    CoordinatorResult,
    End,
    Granted,
    Initialisation,
    Shard,
)
from barnabas_broker.coordinator.transaction.states import AT_REST
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from simulator.broker import Broker
from simulator.checker import Checker, Copy
from simulator.clients import TIMEOUT_MS, Producer
from simulator.coordinator import (
    CoordinatingBroker,
    DataBroker,
    Step,
    transaction_protocol,
)
from simulator.faults import Fault, plan
from simulator.memory_log import MemoryLog
from simulator.network import Reply
from simulator.options import Options
from simulator.transactional_log import TransactionalLog
from simulator.world import World

DATA_RINGS = 2
TIMEOUT_OF_TRANSACTION_MS = 5_000
PRODUCERS = 2

_AGAIN = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.REQUEST_TIMED_OUT,
)
_SEND_AGAIN = (
    "TIMEOUT",
    "NOT_LEADER_OR_FOLLOWER",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    *(code.name for code in _AGAIN),
)


class RecordsOnce(Checker):
    """The checks of a partition whose values have no order that the checker could know."""

    def _commit(self, value: str) -> None:
        if value in self._values and not value.startswith("m:"):
            self.fail("each record once", f"{value} is committed twice")
        self._values.add(value)
        self.committed.append(value)


@dataclass(slots=True)
class Transaction:
    """What one transaction's producer was told."""

    #: with the number of the partition before each
    acknowledged: set[str] = field(default_factory=set)
    #: asked for, by EndTxn; None before
    commit: bool | None = None
    ended: bool = False


class TransactionalPartition(World):
    """A partition that holds what is written in transactions, or the transactions themselves."""

    def new_producers(self) -> list[Producer]:
        """Nobody writes outside of transactions."""
        return []

    def new_checker(self, copies: dict[int, Copy]) -> Checker:
        """Records are once each; their order is the producer state's, where there is one."""
        return RecordsOnce(
            self.events, copies, replicas=self.replicas, min_isr=self.options.min_in_sync
        )


class Ring(TransactionalPartition):
    """A partition that is written to in transactions."""

    def __init__(self, among: TransactionalWorld, number: int) -> None:
        self._among = among
        self.visible: list[str] = []
        self._read_to = 0
        super().__init__(0, among.options, among=among, first=1 + number * among.options.brokers)

    def new_broker(self, number: int) -> Broker:
        """Who asks the coordinator before a transaction begins."""
        return DataBroker(self, number)

    def new_log(self, number: int) -> MemoryLog:
        """With producer state."""
        del number
        return TransactionalLog()

    def announce(self, broker: DataBroker, value: str, reply: Reply) -> None:
        """Ask the coordinator whether the transaction of a value may begin here."""
        _, producer_id, epoch, _, name = value.split(":")
        tp = TopicPartition("t", self._among.data.index(self))
        producer = ProducerEpoch(int(producer_id), int(epoch))
        protocol = transaction_protocol(self.options.bugs)

        def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
            return shard.add_partitions(
                name.partition("#")[0], producer, [tp], waiter, now_ms, protocol=protocol
            )

        self._among.ask(broker.number, step, lambda code: broker.announced(value, reply, code))

    def read(self, broker: DataBroker) -> None:
        """A read_committed consumer reads up to the leader's last stable offset."""
        log = cast(TransactionalLog, broker.log)
        end = log.last_stable_offset
        if end <= self._read_to:
            return
        for value in log.committed_between(self._read_to, end):
            name = value.rpartition(":")[2]
            if not self._among.transactions[name].commit:
                self.checker.fail("transactions are atomic", f"{value} is read, not committed")
            self.visible.append(value)
        self._read_to = end

    def last_look(self) -> None:
        """Every replica is stable to its end, and shows what was read."""
        super().last_look()
        for number, broker in self.brokers.items():
            log = cast(TransactionalLog, broker.log)
            end = log.state.first_unstable_offset
            log.high_watermark = log.log_end_offset
            stable = log.last_stable_offset
            if stable != log.log_end_offset:
                self.checker.fail("liveness", f"{number} has a transaction open at {end}")
            if log.committed_between(0, stable) != self.visible:
                self.checker.fail("replicas agree on aborts", f"{number} shows something else")


class TransactionalWorld(TransactionalPartition):
    """The ring of the coordinator, with those of the data and the producers."""

    def __init__(self, seed: int, options: Options) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._last_id = 0
        super().__init__(seed, options)
        self.data = [Ring(self, number) for number in range(1, 1 + DATA_RINGS)]
        self.rings = [self, *self.data]
        self.writers = [Writer(self, 20 + number) for number in range(PRODUCERS)]

    def new_broker(self, number: int) -> Broker:
        """Who may be the coordinator."""
        return CoordinatingBroker(self, number)

    def plan(self, seed: int) -> list[Fault]:
        """Faults for each ring, as for one."""
        chance, brokers = Random(seed), self.options.brokers
        faults = [
            replace(fault, brokers=tuple(each + ring * brokers for each in fault.brokers))
            for ring in range(1 + DATA_RINGS)
            for fault in plan(self.options, chance)
        ]
        return sorted(faults, key=lambda fault: fault.at_ms)

    def fresh_id(self) -> int:
        """A producer id that nobody has had."""
        self._last_id += 1
        return self._last_id

    def ask(self, source: int, step: Step, on_answer: Callable[[Any], None]) -> None:
        """Ask whoever is taken for the coordinator; `on_answer` may be called twice, or never."""
        target = self.guess_leader()
        broker = cast(CoordinatingBroker, self.brokers[target])

        def reply(answer: object) -> None:
            self.network.send(target, source, "coordinated", on_answer, answer)

        self.network.send(source, target, "coordinate", broker.on_ask, step, reply)

    @property
    def acknowledged(self) -> int:
        """How many records of transactions whose commit was acknowledged."""
        every = self.transactions.values()
        return sum(len(it.acknowledged) for it in every if it.ended and it.commit)

    def rest(self) -> None:
        """No more transactions are begun."""
        for writer in self.writers:
            writer.resting = True

    def last_look(self) -> None:
        """All or nothing of each transaction, and none is open or ending."""
        super().last_look()
        seen: dict[str, list[str]] = {}
        for index, ring in enumerate(self.data):
            for value in ring.visible:
                seen.setdefault(value.rpartition(":")[2], []).append(f"{index}/{value}")
        for name, it in self.transactions.items():
            found = seen.get(name, [])
            if len(found) != len(set(found)):
                self.checker.fail("each record once", f"{found} of {name} are read")
            if (it.ended or found) and it.commit and not it.acknowledged <= set(found):
                what = f"{sorted(found)} of {sorted(it.acknowledged)}"
                self.checker.fail("transactions are atomic", f"{what} of {name} are read")
        for broker in self.brokers.values():
            coordinator = cast(CoordinatingBroker, broker).coordinator
            for each in coordinator.shard.transactions.values() if coordinator else ():
                if each.state not in AT_REST:
                    self.checker.fail("liveness", f"{each.id} is {each.state.value}")


class Writer:
    """A transactional producer: begins, sends, ends, at times is lost, and begins again."""

    def __init__(self, world: TransactionalWorld, number: int) -> None:
        self._world = world
        self._number = number
        self._id = f"t{number}"
        self._producer = NO_PRODUCER
        self._attempt = 0
        self._begun = 0
        self._sequences: dict[int, int] = {}
        self._left = 0
        self.resting = False
        self._wait(300, self._initialise)

    @property
    def _name(self) -> str:
        return f"{self._id}#{self._begun}"

    @property
    def _now(self) -> Transaction:
        return self._world.transactions[self._name]

    def _wait(self, delay_ms: int, then: Callable[[], None]) -> None:
        self._world.events.after(delay_ms, "writer", then)

    def _once(self, on_answer: Callable[..., None]) -> Callable[..., None]:
        """What hears of the present attempt, and of none before it."""
        self._attempt += 1
        attempt = self._attempt

        def once(*answer: Any) -> None:
            if attempt == self._attempt:
                self._attempt += 1
                on_answer(*answer)

        return once

    def _ask(self, step: Step, on_answer: Callable[[Any], None]) -> None:
        once = self._once(on_answer)
        self._world.ask(-self._number, step, once)
        self._world.events.after(
            TIMEOUT_MS, "ask-timeout", once, Granted(ErrorCode.REQUEST_TIMED_OUT)
        )

    # --- a producer's life

    def _initialise(self) -> None:
        request = Initialisation(transactional_id=self._id, timeout_ms=TIMEOUT_OF_TRANSACTION_MS)
        fresh_id = self._world.fresh_id()

        def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
            return shard.initialise(request, waiter, now_ms, fresh_id=fresh_id)

        self._ask(step, self._initialised)

    def _initialised(self, answer: Granted | ErrorCode) -> None:
        if not isinstance(answer, Granted) or answer.code is not ErrorCode.NONE:
            self._wait(100, self._initialise)
            return
        former, self._producer = self._producer, answer.producer
        if former != NO_PRODUCER and self._world.events.chance.random() < 0.5:
            # What the producer of before has sent comes late.
            self._send_to(self._world.events.chance.randrange(DATA_RINGS), former, 0, _ignored)
        self._sequences = {}
        self._begin()

    def _begin(self) -> None:
        self._begun += 1
        self._world.transactions[self._name] = Transaction()
        if self.resting:
            return
        self._left = self._world.events.chance.randint(1, 5)
        self._next()

    def _next(self) -> None:
        chance = self._world.events.chance
        if self._left:
            self._left -= 1
            self._send(chance.randrange(DATA_RINGS))
        elif chance.random() < 0.1:
            self._give_up()
        else:
            self._now.commit = chance.random() < 0.7
            self._end()

    def _give_up(self) -> None:
        """Be lost; whoever comes after begins anew, at once or after the timeout."""
        self._wait(self._world.events.chance.choice((10, 200, 8_000)), self._initialise)

    # --- sending

    def _send(self, index: int) -> None:
        sequence = self._sequences.get(index, 0)

        def on_ack(error: str, _offset: int) -> None:
            self._sent(index, value, error)

        value = self._send_to(index, self._producer, sequence, self._once(on_ack))

    def _send_to(
        self, index: int, producer: ProducerEpoch, sequence: int, on_ack: Callable[..., None]
    ) -> str:
        world, ring = self._world, self._world.data[index]
        value = f"d:{producer.id}:{producer.epoch}:{sequence}:{self._name}"
        target, network = ring.guess_leader(), world.network

        def reply(error: str, offset: int) -> None:
            network.send(target, -self._number, "ack", on_ack, error, offset)

        broker = ring.brokers[target]
        network.send(-self._number, target, "produce", broker.on_produce, value, reply)
        world.events.after(TIMEOUT_MS, "produce-timeout", on_ack, "TIMEOUT", -1)
        return value

    def _sent(self, index: int, value: str, error: str) -> None:
        if not error:
            self._now.acknowledged.add(f"{index}/{value}")
            self._sequences[index] = self._sequences.get(index, 0) + 1
            self._wait(self._world.events.chance.choice((1, 20, 200)), self._next)
        elif error in _SEND_AGAIN:
            self._wait(100, lambda: self._send(index))
        else:
            self._give_up()

    # --- ending

    def _end(self) -> None:
        producer, commit = self._producer, bool(self._now.commit)
        plain = self._world.options.bugs.one_epoch_for_all
        fresh_id = self._world.fresh_id()

        def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
            if plain:
                return shard.end(self._id, producer, waiter, now_ms, commit=commit)
            end = End(self._id, producer, commit)
            return shard.end_with_bump(end, waiter, now_ms, fresh_id=fresh_id)

        self._ask(step, self._ended)

    def _ended(self, answer: Granted | ErrorCode) -> None:
        code = answer.code if isinstance(answer, Granted) else answer
        if code in _AGAIN:
            self._wait(100, self._end)
        elif code is ErrorCode.NONE:
            self._now.ended = True
            if isinstance(answer, Granted):
                self._producer = answer.producer
                self._sequences = {}
            self._begin()
        else:
            self._give_up()


def _ignored(*_: object) -> None:
    """Nobody waits for it."""
