"""The broker is killed while twenty members come and go and producers commit and abort.

What happens when is drawn from a seed; how far each client has come by then is up to the machine.
`SEED=7 pytest tests/clients/test_kill_under_load.py` draws from another one.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.brokers import Broker, broker_under_test
from tests.clients.transactional import PATIENCE_S, SETTINGS, seen_in, text

TOPIC: Final = "in"
TEAM: Final = "team"
PARTITIONS: Final = 12
MEMBERS: Final = 20
PRODUCERS: Final = 3
#: Between two transactions of a producer, so that members have their share of the machine.
PAUSE_S: Final = 0.02
LOAD_S: Final = 35.0
SOAK_LOAD_S: Final = 600.0
CATCH_UP_S: Final = 150.0


@dataclass
class Attempt:
    """One transaction: what was written in it, and what its producer knows of its end."""

    values: list[str]
    outcome: str = "unknown"


@dataclass
class Notes:
    """What all clients were told, and what they found wrong."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    attempts: list[Attempt] = field(default_factory=list)
    read: Counter[str] = field(default_factory=Counter)
    committed: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)


class Client(threading.Thread):
    """A thread that works until it is told to stop; pytest reports what it stumbles over."""

    def __init__(self, notes: Notes, broker: Broker) -> None:
        super().__init__(daemon=True)
        self.notes, self.broker = notes, broker
        self.stopping = threading.Event()

    def end(self) -> None:
        """Stop, and wait for it."""
        self.stopping.set()
        self.join(CATCH_UP_S)
        if self.is_alive():
            self.notes.faults.append(f"a {type(self).__name__} does not end")


class Writer(Client):
    """One transaction after the other with one transactional id."""

    def __init__(self, notes: Notes, broker: Broker, name: str, random: Random) -> None:
        super().__init__(notes, broker)
        self.transactional_id, self.random = name, random
        self.number = 0

    def run(self) -> None:
        while not self.stopping.is_set():
            producer = self._producer()
            try:
                _retried(partial(producer.init_transactions, PATIENCE_S))
                while not self.stopping.wait(PAUSE_S):
                    self._transaction(producer)
            except KafkaException:
                self.notes.met["new producers"] += 1

    def settle(self) -> None:
        """Abort what it may have left open, which hides what others have written after it."""
        successor = self._producer()
        _retried(partial(successor.init_transactions, PATIENCE_S))

    def _producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": 10_000,
                "linger.ms": 0,
                # Otherwise librdkafka 2.16 forgets the only broker (its issue 5511).
                "metadata.recovery.strategy": "none",
            }
        )

    def _transaction(self, producer: Producer) -> None:
        self.number += 1
        values = [
            f"{self.transactional_id}-{self.number}-{it}" for it in range(self.random.randint(1, 8))
        ]
        attempt = Attempt(values)
        self.notes.attempts.append(attempt)
        producer.begin_transaction()
        for value in values:
            producer.produce(TOPIC, value, partition=self.random.randrange(PARTITIONS))
        wants_commit = self.random.random() < 0.7
        try:
            if wants_commit:
                _retried(partial(producer.commit_transaction, PATIENCE_S))
                attempt.outcome = "committed"
                return
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        _retried(partial(producer.abort_transaction, PATIENCE_S))
        if not wants_commit:
            attempt.outcome = "aborted"


class Member(Client):
    """Reads what is committed as one of a group, and commits how far it has come."""

    def __init__(self, notes: Notes, broker: Broker) -> None:
        super().__init__(notes, broker)
        self._expected: dict[int, int] = {}

    def run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": TEAM,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
                "metadata.recovery.strategy": "none",
            }
        )
        consumer.subscribe([TOPIC], on_assign=self._assigned)
        try:
            while not self.stopping.is_set():
                self._round(consumer)
        finally:
            consumer.close()

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """From here on nothing below what was acknowledged before may come again."""
        with self.notes.lock:
            self.notes.met["assignments"] += 1
            self._expected = {it.partition: self.notes.committed[it.partition] for it in partitions}

    def _round(self, consumer: Consumer) -> None:
        taken = [it for it in consumer.consume(50, timeout=0.2) if it.error() is None]
        positions: dict[int, int] = {}
        for message in taken:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            first = self._expected.pop(partition, 0)
            if offset < first:
                self.notes.faults.append(f"partition {partition}: {offset} after {first} committed")
            positions[partition] = offset + 1
        with self.notes.lock:
            self.notes.read.update(text(message) for message in taken)
        if not positions:
            return
        offsets = [TopicPartition(TOPIC, each, offset) for each, offset in positions.items()]
        try:
            answered = consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            self.notes.met["refused commits"] += 1
            return
        with self.notes.lock:
            for each in answered or []:
                if each.error is None:
                    self.notes.met["commits"] += 1
                    known = self.notes.committed[each.partition]
                    self.notes.committed[each.partition] = max(known, each.offset)


def _retried(step: Callable[[], object]) -> None:
    """Do it again as long as librdkafka says that it may work the next time."""
    give_up_at = time.monotonic() + CATCH_UP_S
    while True:
        try:
            step()
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > give_up_at:
                raise
        else:
            return


def _load(broker: Broker, random: Random, notes: Notes, load_s: float) -> list[Member]:
    """Let members come and go and kill the broker; returns the members that are left."""
    writers = [
        Writer(notes, broker, f"writer-{it}", Random(random.random())) for it in range(PRODUCERS)
    ]
    members = [Member(notes, broker) for _ in range(MEMBERS)]
    for client in (*writers, *members):
        client.start()
    begun = time.monotonic()
    kill_at = begun + random.uniform(3, 6)
    while (now := time.monotonic()) < begun + load_s:
        if now > kill_at:
            notes.met["kills"] += 1
            broker.kill()
            broker.start()
            kill_at = time.monotonic() + random.uniform(2, 6)
        if len(members) == MEMBERS or (members and random.random() < 0.4):
            members.pop(random.randrange(len(members))).end()
            notes.met["left"] += 1
        else:
            members.append(Member(notes, broker))
            members[-1].start()
        threading.Event().wait(random.uniform(0, 0.6))
    for writer in writers:
        writer.end()
        writer.settle()
    return members


def _caught_up(notes: Notes, values: set[str]) -> bool:
    give_up_at = time.monotonic() + CATCH_UP_S
    while time.monotonic() < give_up_at:
        with notes.lock:
            if values <= notes.read.keys():
                return True
        threading.Event().wait(0.2)
    return False


def _check_values(attempts: list[Attempt], visible: Counter[str]) -> None:
    """All of a transaction once or nothing of it, as its producer was told."""
    assert not [value for value, count in visible.items() if count > 1], "doubled"
    for attempt in attempts:
        found = {value in visible for value in attempt.values}
        assert len(found) == 1, f"torn: {attempt}"
        if attempt.outcome != "unknown":
            assert found == {attempt.outcome == "committed"}, attempt


def _run(directory: Path, seed: int, load_s: float) -> None:
    print(f"seed {seed}")  # Shown where the test fails.
    notes = Notes()
    with broker_under_test(directory, SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS)])[TOPIC].result(60)
        members = _load(broker, Random(seed), notes, load_s)
        try:
            visible = Counter(seen_in(broker, TOPIC, PARTITIONS, patience_s=CATCH_UP_S))
            _check_values(notes.attempts, visible)
            assert _caught_up(notes, set(visible)), broker.tail()
        finally:
            for member in members:
                member.end()
        assert notes.read.keys() == visible.keys(), "members have read what was aborted"
        assert not notes.faults, notes.faults
        for partition, offset in _committed(broker).items():
            assert offset >= notes.committed[partition], f"the offset of {partition} went back"
    outcomes = Counter(attempt.outcome for attempt in notes.attempts)
    met = notes.met | outcomes
    print(dict(met))
    wanted = ("kills", "left", "assignments", "commits", "committed", "aborted")
    assert all(met[what] for what in wanted), met


def _committed(broker: Broker) -> dict[int, int]:
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": TEAM})
    asked = [TopicPartition(TOPIC, it) for it in range(PARTITIONS)]
    found: defaultdict[int, int] = defaultdict(int)
    found |= {it.partition: max(it.offset, 0) for it in reader.committed(asked, timeout=PATIENCE_S)}
    reader.close()
    return found


@pytest.mark.timeout(480)
def test_kills_under_members_and_transactions_lose_and_double_nothing(tmp_path: Path) -> None:
    """Committed records once, aborted never, offsets only forth, through every kill."""
    _run(tmp_path, int(os.environ.get("SEED", "1")), LOAD_S)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_kills_for_long(tmp_path: Path) -> None:
    """The same for ten minutes."""
    _run(tmp_path, int(os.environ.get("SEED", "2")), SOAK_LOAD_S)
