"""A transactional producer or a member of a group in a process of its own, while brokers die.

See `client_process` for why. What a client is told it writes down before it goes on.
"""

from __future__ import annotations

import json
import mmap
import select
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.clients.client_process import tell
from tests.waiting import ATTEMPT_S, wait_for

TOPIC: Final = "in"
TEAM: Final = "team"
PARTITIONS: Final = 12
#: Between two transactions of a producer, so that members have their share of the machine.
PAUSE_S: Final = 0.02
#: What either kind of client needs: otherwise librdkafka 2.16 forgets the only broker (its issue
#: 5511), and waits for up to ten seconds before it connects again.
REMEMBERING: Final = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 500}
#: What a member of the classic protocol says of itself.
CLASSIC: Final = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500}


class Acknowledged:
    """The highest offset that a member was told is committed, for each partition.

    Shared by all members, and without a lock that a killed one could keep. Only the owner of a
    partition writes; where an old owner is late, the mark is lower than it could be, never higher
    than what was acknowledged.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(8 * PARTITIONS))
        with path.open("r+b") as file:
            self._marks = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")

    def __getitem__(self, partition: int) -> int:
        return self._marks[partition]

    def add(self, partition: int, offset: int) -> None:
        """Note what was acknowledged."""
        self._marks[partition] = max(self._marks[partition], offset)


def stopping(wait_s: float = 0) -> bool:
    """Whether nobody holds the other end of the standard input any more."""
    return bool(select.select([sys.stdin], [], [], wait_s)[0])


def retried(step: Callable[[], object]) -> None:
    """Do it again as long as librdkafka says that it may work the next time."""

    def attempt() -> KafkaException | None:
        try:
            step()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            return error
        return None

    wait_for("librdkafka's last error", attempt, until=lambda error: error is None)


def transactional_producer(
    bootstrap: str, transactional_id: str, properties: Mapping[str, str]
) -> Producer:
    """A producer whose transactions the broker aborts after 10 s."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            "linger.ms": 0,
            "log_level": 0,
        }
        | REMEMBERING
        | dict(properties)
    )


def write(name: str, bootstrap: str, random: Random, properties: Mapping[str, str]) -> None:
    """One transaction after the other with one transactional id."""
    number = 0
    while not stopping():
        producer = transactional_producer(bootstrap, name, properties)
        try:
            retried(partial(producer.init_transactions, ATTEMPT_S))
            while not stopping(PAUSE_S):
                number += 1
                values = [f"{name}-{number}-{it}" for it in range(random.randint(1, 8))]
                _transaction(producer, values, random)
        except KafkaException:
            tell(met="new producers")


def _transaction(producer: Producer, values: list[str], random: Random) -> None:
    tell(values=values)
    producer.begin_transaction()
    for value in values:
        producer.produce(TOPIC, value, partition=random.randrange(PARTITIONS))
    wants_commit = random.random() < 0.7
    try:
        if wants_commit:
            retried(partial(producer.commit_transaction, ATTEMPT_S))
            tell(outcome="committed")
            return
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
    retried(partial(producer.abort_transaction, ATTEMPT_S))
    if not wants_commit:
        tell(outcome="aborted")


class Member:
    """Reads what is committed as one of a group, and commits how far it has come.

    The group has an offset for every partition before it has members, so that none ever looks one
    up: librdkafka 2.16 takes the answer to a lookup that comes after its partition was revoked for
    a reason to fetch it all the same, and may hand out what it got when the partition comes back.
    """

    def __init__(
        self, bootstrap: str, team: str, acknowledged: Acknowledged, properties: Mapping[str, str]
    ) -> None:
        self._acknowledged = acknowledged
        self._expected: dict[int, int] = {}
        classic = properties.get("group.protocol", "classic") == "classic"
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": team,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "max.poll.interval.ms": 60_000,
                "log_level": 0,
            }
            | (CLASSIC if classic else {})
            | REMEMBERING
            | dict(properties)
        )

    def run(self) -> None:
        """Until it is to end."""
        self._consumer.subscribe([TOPIC], on_assign=self._assigned)
        try:
            while not stopping():
                self._round()
        finally:
            self._consumer.close()

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """From here on nothing below what was acknowledged before may come again."""
        tell(met="assignments")
        self._expected = {it.partition: self._acknowledged[it.partition] for it in partitions}

    def _round(self) -> None:
        taken = []
        for message in self._consumer.consume(50, 0.2):
            error = message.error()
            if error is None:
                taken.append(message)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                tell(fault=f"partition {message.partition()}: {error.str()}")
            else:
                tell(met=error.name())
        positions: dict[int, int] = {}
        for message in taken:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            first = self._expected.pop(partition, 0)
            if offset < first:
                tell(fault=f"partition {partition}: {offset} after {first} committed")
            positions[partition] = offset + 1
        if not positions:
            return
        tell(read=[(message.value() or b"").decode() for message in taken])
        offsets = [TopicPartition(TOPIC, each, offset) for each, offset in positions.items()]
        try:
            answered = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            tell(met="refused commits")
            return
        for each in answered or []:
            if each.error is None:
                tell(met="commits")
                self._acknowledged.add(each.partition, each.offset)


def main(role: str, name: str, bootstrap: str, seed: str, *given: str) -> None:
    """A client of this role until the standard input ends."""
    directory, team, properties = given
    more = json.loads(properties)
    if role == "writer":
        write(name, bootstrap, Random(int(seed)), more)
    else:
        Member(bootstrap, team, Acknowledged(Path(directory) / team), more).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
