"""Reading many records through a consumer group, and timing that."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas_broker.cli.client import describe
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.perf.measures import MEBIBYTE, rate

if TYPE_CHECKING:
    from confluent_kafka import Consumer

BATCH_RECORDS = 10_000
POLL_S = 0.1
JOINING_S = 30.0


@dataclass(slots=True)
class Read:
    """What was read. `joining_s` is the time until the first partitions were assigned."""

    count: int = 0
    payload_bytes: int = 0
    elapsed_s: float = 0.0
    joining_s: float = 0.0
    timed_out: bool = False

    @property
    def mebibytes(self) -> float:
        """Of keys and values."""
        return self.payload_bytes / MEBIBYTE

    @property
    def fetching_s(self) -> float:
        """The time after joining."""
        return max(self.elapsed_s - self.joining_s, 0.0)

    @property
    def records_per_s(self) -> float:
        """Over the whole time."""
        return rate(self.count, self.elapsed_s)

    @property
    def mebibytes_per_s(self) -> float:
        """Over the whole time."""
        return rate(self.mebibytes, self.elapsed_s)


def read(
    consumer: Consumer, topic: str, count: int, watch: Callable[[Read], None], *, idle_s: float
) -> Read:
    """Read `count` records, or until none came for `idle_s`; CommandError where it cannot go on.

    Joining the group may take `JOINING_S`, however short `idle_s` is: a broker makes the first
    member of a group wait for others (`group.initial.rebalance.delay.ms`).
    """
    found = Read()
    began_s = last_s = time.monotonic()

    def assigned(_: Any, partitions: Any) -> None:
        nonlocal last_s
        if not found.joining_s and partitions:
            last_s = time.monotonic()
            found.joining_s = last_s - began_s

    consumer.subscribe([topic], on_assign=assigned)
    while found.count < count:
        messages = consumer.consume(min(BATCH_RECORDS, count - found.count), POLL_S)
        for message in messages:
            error = message.error()
            if error is not None:
                raise CommandError(f"cannot read {topic}: {describe(error)}")
            found.count += 1
            found.payload_bytes += len(message.value() or b"") + len(message.key() or b"")
        now_s = time.monotonic()
        if messages:
            last_s = now_s
        found.elapsed_s = now_s - began_s
        watch(found)
        if now_s - last_s > (idle_s if found.joining_s else max(idle_s, JOINING_S)):
            found.timed_out = True
            break
    return found
