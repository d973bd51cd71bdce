"""The way of single records: how long until acknowledged, how long until a consumer has it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas_broker.cli.client import describe
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.perf.measures import Latencies

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

# The first records open connections and warm caches, and are not counted.
WARM_UP = 10


@dataclass(slots=True)
class Ways:
    """Until acknowledged, and until read, both from the call of the producer."""

    acknowledged: Latencies = field(default_factory=Latencies)
    read: Latencies = field(default_factory=Latencies)


def measure(
    producer: Producer,
    consumer: Consumer,
    plan: tuple[str, int, bytes],
    watch: Callable[[int], None],
    *,
    timeout_s: float,
) -> Ways:
    """Send one record at a time and wait until `consumer`, at the end of the topic, has it.

    `plan` is topic, count and payload. Raises CommandError where a record does not come back.
    """
    topic, count, payload = plan
    ways = Ways()
    for number in range(count + WARM_UP):
        acknowledged_s, read_s = _one(producer, consumer, topic, payload, timeout_s)
        if number >= WARM_UP:
            ways.acknowledged.add(acknowledged_s * 1000)
            ways.read.add(read_s * 1000)
            watch(number - WARM_UP + 1)
    return ways


def _one(
    producer: Producer, consumer: Consumer, topic: str, payload: bytes, timeout_s: float
) -> tuple[float, float]:
    """Seconds until acknowledged and until read."""
    reports: list[tuple[float, KafkaError | None]] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        reports.append((time.perf_counter(), error))

    began_s = time.perf_counter()
    producer.produce(topic, payload, on_delivery=delivered)
    while not reports and time.perf_counter() - began_s < timeout_s:
        producer.poll(timeout_s)
    if not reports:
        raise CommandError("a record was not acknowledged in time")
    acknowledged_s, error = reports[0]
    if error is not None:
        raise CommandError(f"a record was not delivered: {describe(error)}")
    message = consumer.poll(timeout_s)
    read_s = time.perf_counter()
    if message is None:
        raise CommandError("an acknowledged record was not read in time")
    if (failure := message.error()) is not None:
        raise CommandError(f"cannot read {topic}: {describe(failure)}")
    if message.value() != payload:
        raise CommandError(f"another producer writes to {topic}: measure on a topic of its own")
    return acknowledged_s - began_s, read_s - began_s
