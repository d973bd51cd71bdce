"""A producer that goes on while things break, and remembers what was promised to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaError, Message, Producer

from e2e.kafka import Client, Place, Record
from tests.waiting import ANSWER, SETTLE, seconds
from tests.waiting.machine import Budget

# A record waits for its brokers for as long as its test does.
NEVER_MS: Final = 0
PACE_S: Final = 0.02
# As Kafka's own clients: a broker that is back is connected to within a second.
RECONNECT_MAX_MS: Final = 1000


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """A time in which a partition acknowledged nothing, in machine seconds and in seconds."""

    units: float
    lasted_s: float
    partition: int

    def __str__(self) -> str:
        return (
            f"{self.lasted_s:.1f} s ({self.units:.1f} machine seconds) in partition"
            f" {self.partition}"
        )


class Load:
    """Sends a record every 20 ms from `with` on, with acks=all, to each partition in its turn.

    What is acknowledged is in `acknowledged` by its place, or in `somewhere`: when the answer to a
    request was lost with its broker and later records of the partition are acknowledged, the
    library knows that the earlier ones were taken, but not where they are.
    """

    def __init__(self, client: Client, topic: str) -> None:
        self.acknowledged: dict[Place, Record] = {}
        self.somewhere: list[Record] = []
        self.failures: list[str] = []
        self.gaps: dict[int, Gap] = {}
        """The longest time between two acknowledgements of each partition."""
        self._topic = topic
        self._partitions = 0
        self._latest: dict[int, tuple[float, float]] = {}
        self._clock = Budget(inf)
        self._producer = Producer(
            {
                **client,
                "enable.idempotence": True,
                # The first requests to a partition may overtake each other ("What no broker can
                # tell" in docs/concepts/durability.md).
                "max.in.flight.requests.per.connection": 1,
                "delivery.timeout.ms": NEVER_MS,
                "reconnect.backoff.max.ms": RECONNECT_MAX_MS,
                "log_level": 0,
            }
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def use_password(self, user: str, password: str) -> None:
        """Authenticate with another password wherever it connects from now on."""
        self._producer.set_sasl_credentials(user, password)

    @property
    def longest_gap(self) -> Gap:
        """The longest time in which a partition acknowledged nothing."""
        return max(self.gaps.values())

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(PACE_S):
            record = (b"key %d" % number, b"value %d" % number)
            self._producer.produce(
                self._topic,
                key=record[0],
                value=record[1],
                partition=number % self._partitions,
                on_delivery=self._delivered,
            )
            self._clock.left()  # What the machine has left is read often.
            self._producer.poll(0)
            number += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error.str())
            return
        self._note_gap(message.partition() or 0)
        record, offset = (message.key() or b"", message.value() or b""), message.offset()
        if offset is None:
            self.somewhere.append(record)
        else:
            self.acknowledged[message.partition() or 0, offset] = record

    def _note_gap(self, partition: int) -> None:
        self._clock.left()
        now = (self._clock.spent, self._clock.elapsed_s)
        before = self._latest.get(partition, now)
        self._latest[partition] = now
        gap = Gap(now[0] - before[0], now[1] - before[1], partition)
        self.gaps[partition] = max(gap, self.gaps.get(partition, gap))

    def __enter__(self) -> Self:
        found = self._producer.list_topics(self._topic, timeout=seconds(ANSWER))
        self._partitions = len(found.topics[self._topic].partitions)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        waiting = self._producer.flush(seconds(SETTLE))
        if waiting:
            self.failures.append(f"{waiting} records are not acknowledged")
