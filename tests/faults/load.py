"""Producers that go on over the deaths of their broker, and what is checked afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Message, Producer

from tests.clients import START_MS
from tests.clients.librdkafka import read_all
from tests.waiting import ANSWER, SETTLE, seconds, wait_for

AHEAD = 2000
"""How many records more than are waited for are sent at most."""
ROUNDS = 5000
"""How often something is sent or polled for between two pauses of a wait."""

Place = tuple[int, int]
"""Partition and offset."""


class Load:
    """A producer of numbered records into the two partitions of a topic."""

    def __init__(self, bootstrap: str, topic: str, *, begin: int = 0, **settings: object) -> None:
        self.acknowledged: dict[bytes, Place] = {}
        self.sent = 0
        self.refused: list[Any] = []
        self._topic = topic
        self._begin = begin
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": int(seconds(SETTLE) * 1000),
                # Otherwise librdkafka 2.16 forgets the only broker (its issue 5511).
                "metadata.recovery.strategy": "none",
                **settings,
            }
        )

    def send_until(self, acknowledged: int) -> None:
        """Keep sending until so many records are acknowledged; others are still on their way."""

        def send() -> int:
            for _ in range(ROUNDS):
                if len(self.acknowledged) >= acknowledged:
                    break
                if self.sent < acknowledged + AHEAD:
                    self._send()
                    self._producer.poll(0 if self.sent % 50 else 0.001)
                else:
                    self._producer.poll(0.01)
            return len(self.acknowledged)

        wait_for(
            f"acknowledged records, to be {acknowledged}",
            send,
            until=lambda count: count >= acknowledged,
        )

    def _send(self) -> None:
        number = self._begin + self.sent
        self._producer.produce(
            self._topic,
            b"%d" % number + b"." * (number % 90),
            key=b"%d" % number,
            partition=number % 2,
            timestamp=START_MS + number,
            on_delivery=self._reported,
        )
        self.sent += 1

    def finish(self) -> None:
        """Wait for every record that is on its way."""
        assert self._producer.flush(seconds(SETTLE)) == 0
        assert self.refused == []
        assert len(self.acknowledged) == self.sent

    def abandon(self) -> None:
        """Wait for nothing more."""
        self._producer.purge()
        self._producer.flush(seconds(ANSWER))

    def _reported(self, error: Any, message: Message) -> None:
        if error is not None:
            self.refused.append(error)
            return
        key, partition, offset = message.key(), message.partition(), message.offset()
        assert isinstance(key, bytes)
        assert partition is not None
        assert offset is not None
        self.acknowledged[key] = (partition, offset)


def stored(bootstrap: str, topic: str) -> dict[Place, bytes]:
    """The keys of all records, by partition and offset."""
    found = {}
    for partition in (0, 1):
        for message in read_all(bootstrap, topic, partition):
            key, offset = message.key(), message.offset()
            assert isinstance(key, bytes)
            assert offset is not None
            found[partition, offset] = key
    return found


def in_order(keys: Mapping[Place, bytes]) -> bool:
    """Whether the numbers of each partition grow with its offsets, without gaps in these."""
    for partition in (0, 1):
        places = sorted(offset for where, offset in keys if where == partition)
        numbers = [int(keys[partition, offset]) for offset in places]
        if places != list(range(len(places))) or numbers != sorted(set(numbers)):
            return False
    return True
