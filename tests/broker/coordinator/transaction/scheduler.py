"""A world of producers, a coordinator and partitions in which a seed decides what happens next.

The coordinator is the product's core; everything around it is a model: a log that counts what it
holds late, or loses what does not count yet in a crash; partitions that check epochs and sequences
and ask the coordinator before they open a transaction; producers, two of them with each
transactional id, that ask again when they hear nothing, give up, and are replaced. Requests arrive
late, in any order, twice; answers get lost.

One thing can happen in Kafka's first transaction protocol that no coordinator could tell: an
EndTxn of one transaction is delivered within the next one of the same producer, with the epoch and
id of both. So there no end outlives its transaction here, unless `late_ends` says so. The second
protocol gives every transaction an epoch of its own (KIP-890), and late ends are harmless in it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.limits import Limits
from barnabas_broker.coordinator.transaction.records import KIND, TransactionRecord
from barnabas_broker.coordinator.transaction.shard import (
    CoordinatorResult,
    End,
    Granted,
    Initialisation,
    Shard,
    WriteMarkers,
)
from barnabas_broker.coordinator.transaction.transaction import EXHAUSTED_EPOCH, Transaction
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition

LIMITS = Limits(timeout_max_ms=100_000, expiration_ms=10_000_000)
TIMEOUT_MS = 5000
PARTITIONS = [TopicPartition("t", index) for index in range(3)]
SHUT_OUT = (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH)
GIVE_UP = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
)


@dataclass
class Open:
    """What a partition knows of a producer id."""

    epoch: int = -1
    sequences: list[int] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


class Partition:
    """A log of one partition, as far as transactions are concerned."""

    def __init__(self) -> None:
        self.producers: dict[int, Open] = {}
        self.visible: list[str] = []

    def fault(self, producer: Producer, sequence: int) -> ErrorCode | None:
        """Why a batch is refused; NONE for one that is there already, None where it is not."""
        known = self.producers.setdefault(producer.id, Open())
        if producer.epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        sequences = known.sequences if producer.epoch == known.epoch else []
        if sequence in sequences:
            return ErrorCode.NONE
        return None if sequence == len(sequences) else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def append(self, producer: Producer, sequence: int, value: str) -> None:
        """Take a batch that has no fault."""
        known = self.producers[producer.id]
        if known.epoch != producer.epoch:
            known.epoch, known.sequences = producer.epoch, []
        known.sequences.append(sequence)
        known.values.append(value)

    def mark(self, order: WriteMarkers) -> None:
        """End a producer's transaction, if one is open."""
        known = self.producers.setdefault(order.producer.id, Open())
        assert order.producer.epoch >= known.epoch, "a marker of an epoch that is over"
        if order.producer.epoch > known.epoch:
            known.epoch, known.sequences = order.producer.epoch, []
        if order.commit:
            self.visible += known.values
        known.values = []


@dataclass
class Attempt:
    """One transaction that a producer tried, and what it believes has become of it."""

    values: list[str]
    outcome: str = "unknown"


@dataclass
class Request:
    """What a producer asks; `number` tells its latest request from those it gave up."""

    client: Client
    number: int
    kind: str
    producer: Producer
    details: Any = None


class Client:
    """A producer: one request at a time, asked again until it is answered."""

    def __init__(self, world: World, transactional_id: str) -> None:
        self.world = world
        self.transactional_id = transactional_id
        self.number = 0
        self.restart()

    def restart(self) -> None:
        """A new process: it knows nothing."""
        self.producer = Producer(-1, -1)
        self.sequences: Counter[TopicPartition] = Counter()
        self.attempt: Attempt | None = None
        self.gave_up = False
        self.ask("init")

    def begin(self) -> None:
        random = self.world.random
        self.partitions = random.sample(PARTITIONS, random.randint(1, len(PARTITIONS)))
        self.unwritten = list(self.partitions)
        self.attempt = Attempt([])
        self.world.attempts.append(self.attempt)
        if self.world.protocol:
            self.sequences.clear()
            self.write()
        else:
            self.ask("add", self.partitions)

    def write(self) -> None:
        if not self.unwritten:
            self.ask("end", self.world.random.random() < 0.7)
            return
        partition = self.unwritten[0]
        value = f"value {self.world.next_value}"
        self.world.next_value += 1
        assert self.attempt is not None
        self.attempt.values.append(value)
        self.ask("produce", (partition, self.sequences[partition], value))

    def ask(self, kind: str, details: Any = None) -> None:
        self.number += 1
        self.pending = Request(self, self.number, kind, self.producer, details)
        self.world.in_flight.append(self.pending)

    def ask_again(self) -> None:
        """Nothing was heard for long."""
        self.world.in_flight.append(self.pending)

    def give_up(self) -> None:
        """Abort instead of writing on; what was sent may still arrive, also after the end."""
        if self.pending.kind == "produce":
            self.gave_up = True
            self.ask("end", False)

    def hear(self, request: Request, answer: Any) -> None:
        if request.number != self.number:
            return
        code = answer.code if isinstance(answer, Granted) else answer
        was_abort = request.kind == "end" and not request.details
        if self.world.protocol and code in SHUT_OUT and self.attempt and not was_abort:
            # It took too long; by an abort it learns how to go on, unless it was replaced.
            self.world.met["shut out"] += 1
            self.ask("end", False)
        elif code in GIVE_UP:
            self.world.met["fenced"] += 1
            self.restart()
        elif code is not ErrorCode.NONE:
            self.ask_again()
        else:
            self._go_on(request, answer)

    def _go_on(self, request: Request, answer: Any) -> None:
        if request.kind == "init":
            self.producer = answer.producer
            self.begin()
        elif request.kind == "add":
            self.write()
        elif request.kind == "produce":
            partition = self.unwritten.pop(0)
            self.sequences[partition] += 1
            self.write()
        else:
            self._ended(request, answer)

    def _ended(self, request: Request, answer: Any) -> None:
        assert self.attempt is not None
        self.attempt.outcome = "committed" if request.details else "aborted"
        self.world.met[self.attempt.outcome] += 1
        if isinstance(answer, Granted):
            self.world.met["rotated"] += self.producer.id != answer.producer.id
            self.producer, self.gave_up = answer.producer, False
        elif not self.world.late_ends:
            self.world.forget_ends(self)
        if self.gave_up:
            self.restart()  # With another epoch: it cannot know which sequence comes next.
        else:
            self.begin()


@dataclass
class Job:
    """Markers that are being written."""

    order: WriteMarkers
    missing: list[TopicPartition]


class World:
    """Everything, and the random numbers that move it."""

    def __init__(self, seed: int, *, protocol: int = 0, late_ends: bool = False) -> None:
        self.random = Random(seed)
        self.protocol = protocol
        self.late_ends = late_ends
        self.limits = replace(LIMITS, protocol=protocol)
        self.now_ms = 1_000_000
        self.met: Counter[str] = Counter()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.counted = 0
        self.shard = Shard(self.limits)
        self.waiting: list[tuple[int, CoordinatorResult]] = []
        self.jobs: list[Job] = []
        self.partitions = {each: Partition() for each in PARTITIONS}
        self.in_flight: list[Request] = []
        self.attempts: list[Attempt] = []
        self.next_value = 0
        self.next_id = 0
        self.is_well = False
        if protocol and self.random.random() < 0.5:
            self._wear_out("b")
        self.clients = [Client(self, name) for name in ("a", "a", "b")]

    def _wear_out(self, transactional_id: str) -> None:
        """Have an id that has nearly used up its epochs."""
        self.next_id += 1
        epoch = EXHAUSTED_EPOCH - self.random.randint(1, 5)
        worn = Transaction(
            id=transactional_id, producer_id=self.next_id, epoch=epoch, timeout_ms=TIMEOUT_MS
        )
        self.perform(CoordinatorResult(self.now_ms, [TransactionRecord(transactional_id, worn)]))
        self.count()

    # --- the coordinator and its log

    def perform(self, result: CoordinatorResult) -> None:
        if result.records and not self.is_well and self.random.random() < 0.05:
            result = result.refused(ErrorCode.NOT_ENOUGH_REPLICAS)
        for record in result.records:
            self._check_step(record)
            self.log.append(KIND.encode(record))
            self.shard.replay(record, result.now_ms)
        self.waiting.append((len(self.log), result))
        if self.is_well or self.random.random() < 0.5:
            self.count()

    def _check_step(self, record: TransactionRecord) -> None:
        before = self.shard.transactions.get(record.transactional_id)
        if before is not None and record.transaction is not None:
            after = record.transaction
            assert after.producer_id != before.producer_id or after.epoch >= before.epoch

    def count(self) -> None:
        """Everything in the log counts: who waited for that is answered."""
        self.counted = len(self.log)
        waiting, self.waiting = self.waiting, []
        for _, result in waiting:
            for request, answer in result.answers:
                assert isinstance(request, _Waiter)
                if request.request.kind == "produce" and not answer:
                    answer = self._produce(request.request.client.transactional_id, request.request)
                if self.is_well or self.random.random() < 0.9:
                    request.request.client.hear(request.request, answer)
            for order in result.orders:
                assert isinstance(order, WriteMarkers)
                self.jobs.append(Job(order, sorted(order.partitions)))

    def crash(self) -> None:
        """Memory is gone, and perhaps what did not count yet."""
        self.met["crashes"] += 1
        del self.log[self.random.randint(self.counted, len(self.log)) :]
        self.counted = len(self.log)
        self.waiting, self.jobs = [], []
        self.shard = Shard(self.limits)
        for key, value in self.log:
            record = KIND.decode(key, value)
            assert record is not None
            self.shard.replay(record, self.now_ms)
        for result in self.shard.loaded(self.now_ms):
            self.perform(result)

    def work(self) -> None:
        """Write a marker, or the completion after the last."""
        if not self.jobs:
            return
        job = self.random.choice(self.jobs)
        if job.missing:
            self.partitions[job.missing.pop(self.random.randrange(len(job.missing)))].mark(
                job.order
            )
            return
        result = self.shard.complete(job.order, self.now_ms)
        records = len(self.log)
        self.perform(result)
        if not result.records or len(self.log) > records:
            self.jobs = [each for each in self.jobs if each is not job]

    def pass_time(self) -> None:
        self.now_ms += self.random.choice((10, 100, 1000, TIMEOUT_MS + 1))
        for result in self.shard.abort_timed_out(self.now_ms):
            self.met["timed out"] += 1
            self.perform(result)

    # --- requests

    def deliver(self) -> None:
        """Some request arrives, and may arrive once more."""
        if not self.in_flight:
            return
        index = self.random.randrange(len(self.in_flight))
        request = self.in_flight[index]
        if self.random.random() < 0.85:
            del self.in_flight[index]
        self._serve(request)

    def _serve(self, request: Request) -> None:
        transactional_id, waiter = request.client.transactional_id, _Waiter(request)
        if request.kind == "produce" and self.protocol:
            # The broker that leads the partition asks for it, if it is not in yet.
            place = [request.details[0]]
            self.perform(
                self.shard.add_partitions(
                    transactional_id, request.producer, place, waiter, self.now_ms, protocol=2
                )
            )
        elif request.kind == "produce":
            code = self._produce(transactional_id, request)
            if self.is_well or self.random.random() < 0.9:
                request.client.hear(request, code)
        elif request.kind == "init":
            asked = Initialisation(transactional_id=transactional_id, timeout_ms=TIMEOUT_MS)
            self.next_id += 1
            self.perform(self.shard.initialise(asked, waiter, self.now_ms, fresh_id=self.next_id))
        elif request.kind == "add":
            self.perform(
                self.shard.add_partitions(
                    transactional_id, request.producer, request.details, waiter, self.now_ms
                )
            )
        elif self.protocol:
            end = End(transactional_id, request.producer, request.details)
            self.next_id += 1
            self.perform(self.shard.end_with_bump(end, waiter, self.now_ms, fresh_id=self.next_id))
        else:
            self.perform(
                self.shard.end(
                    transactional_id,
                    request.producer,
                    waiter,
                    self.now_ms,
                    commit=request.details,
                )
            )

    def _produce(self, transactional_id: str, request: Request) -> ErrorCode:
        place, sequence, value = request.details
        partition = self.partitions[place]
        known = partition.producers.get(request.producer.id, Open())
        if not known.values or known.epoch != request.producer.epoch:
            code = self.shard.verify(transactional_id, request.producer, [place])[place]
            if code:
                return code
        fault = partition.fault(request.producer, sequence)
        if fault is None:
            partition.append(request.producer, sequence, value)
        return fault or ErrorCode.NONE

    def forget_ends(self, client: Client) -> None:
        self.in_flight = [
            each for each in self.in_flight if each.client is not client or each.kind != "end"
        ]

    # --- the scenario

    def run(self, steps: int) -> None:
        """Let things happen."""
        happenings = (
            (self.deliver, 60),
            (self.work, 25),
            (self.count, 10),
            (lambda: self.random.choice(self.clients).ask_again(), 10),
            (lambda: self.random.choice(self.clients).give_up(), 3),
            (self.pass_time, 5),
            (self.crash, 2),
            (lambda: self.random.choice(self.clients).restart(), 1),
        )
        actions, weights = zip(*happenings, strict=True)
        for action in self.random.choices(actions, weights, k=steps):
            action()

    def heal(self) -> None:
        """Producers are gone, nothing fails any more: everything open must come to its end."""
        self.is_well = True
        self.in_flight = []
        self.count()
        self.in_flight = []
        self.now_ms += 2 * TIMEOUT_MS
        self.pass_time()
        for _ in range(10_000):
            if not self.jobs:
                break
            self.work()

    def check(self) -> None:
        """Nothing lost, nothing doubled, nothing torn, nothing left open."""
        assert not self.jobs
        assert all(not each.is_ending for each in self.shard.transactions.values())
        visible: Counter[str] = Counter()
        for partition in self.partitions.values():
            assert not any(known.values for known in partition.producers.values()), "left open"
            visible.update(partition.visible)
        assert all(count == 1 for count in visible.values()), "seen twice"
        for attempt in self.attempts:
            seen = {value in visible for value in attempt.values}
            assert len(seen) <= 1, f"torn: {attempt}"
            if attempt.outcome == "committed":
                assert seen == {True}, f"lost: {attempt}"
            elif attempt.outcome == "aborted":
                assert seen == {False}, f"not undone: {attempt}"


@dataclass(frozen=True)
class _Waiter:
    """Who waits for the answer to a request."""

    request: Request = field(hash=False, compare=False)
