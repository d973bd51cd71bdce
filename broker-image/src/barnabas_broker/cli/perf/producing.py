"""Sending many records as fast as possible, or at a given rate, and timing each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barnabas_broker.cli.client import describe
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.perf.measures import MEBIBYTE, Latencies, due_s, rate

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

# Kafka's default of buffer.memory holds as many records of ordinary size.
QUEUE_RECORDS = 100_000
POLL_EVERY = 64


@dataclass(slots=True, kw_only=True)
class Plan:
    """What to send: `payloads` in turn, `count` in all, at most `per_second` (no limit below 0)."""

    topic: str
    count: int
    payloads: Sequence[bytes]
    per_second: float = -1


@dataclass(slots=True)
class Sent:
    """What came of it; latency is from the call of the client to the broker's answer."""

    latencies: Latencies = field(default_factory=Latencies)
    delivered: int = 0
    failed: int = 0
    payload_bytes: int = 0
    elapsed_s: float = 0.0
    first_error: KafkaError | None = None

    @property
    def records_per_s(self) -> float:
        """Delivered records."""
        return rate(self.delivered, self.elapsed_s)

    @property
    def mebibytes_per_s(self) -> float:
        """Of values, as Kafka's tool counts."""
        return rate(self.payload_bytes / MEBIBYTE, self.elapsed_s)


Watch = Callable[[Sent], None]


def send(producer: Producer, plan: Plan, watch: Watch, *, timeout_s: float) -> Sent:
    """Send everything and wait for the answers; `watch` sees the progress every now and then.

    Raises CommandError where the last answers do not come within `timeout_s`.
    """
    sent = Sent()
    add, payloads, count = sent.latencies.add, plan.payloads, plan.count

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            sent.failed += 1
            sent.first_error = sent.first_error or error
            return
        sent.delivered += 1
        sent.payload_bytes += len(message)
        add((message.latency() or 0.0) * 1000)

    began_s = time.monotonic()
    for number in range(count):
        payload = payloads[number % len(payloads)]
        while True:
            try:
                producer.produce(plan.topic, payload, on_delivery=delivered)
            except BufferError:
                producer.poll(0.1)
            else:
                break
        if number % POLL_EVERY == 0 or plan.per_second > 0:
            sent.elapsed_s = time.monotonic() - began_s
            producer.poll(0)
            # Polling returns as soon as there was an answer to report.
            while wait_s := due_s(number + 1, plan.per_second, time.monotonic() - began_s):
                producer.poll(wait_s)
            watch(sent)
    _finish(producer, sent, watch, (began_s, timeout_s))
    return sent


def _finish(producer: Producer, sent: Sent, watch: Watch, times: tuple[float, float]) -> None:
    """Wait for the last answers; `times` are the beginning and the longest to wait from now."""
    began_s, timeout_s = times
    deadline_s = time.monotonic() + timeout_s
    while (waiting := producer.flush(0.1)) and time.monotonic() < deadline_s:
        sent.elapsed_s = time.monotonic() - began_s
        watch(sent)
    sent.elapsed_s = time.monotonic() - began_s
    if waiting:
        raise CommandError(f"{waiting} records: no answer in time")


def require_all(sent: Sent) -> None:
    """CommandError where records were refused."""
    if sent.failed and sent.first_error is not None:
        total = sent.failed + sent.delivered
        reason = describe(sent.first_error)
        raise CommandError(f"{sent.failed} of {total} records were not delivered: {reason}")


def properties(extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """Client properties that measure what Kafka's tool measures."""
    return {
        "queue.buffering.max.messages": QUEUE_RECORDS,
        "linger.ms": 0,
        "partitioner": "murmur2_random",
        **(extra or {}),
    }
