"""Reading through librdkafka without groups, for tests that check what another client wrote."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

from tests.clients import START_MS

PATIENCE_S = 60


def consumer(bootstrap: str, **settings: Any) -> Consumer:
    """A consumer for assign(); the group it must name is never joined, and nothing committed."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "never-joined",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            # Otherwise librdkafka 2.16 forgets the only broker (its issue 5511).
            "metadata.recovery.strategy": "none",
        }
        | settings
    )


def read_all(
    bootstrap: str,
    topic: str,
    partition: int = 0,
    *,
    start: int = OFFSET_BEGINNING,
    **settings: Any,
) -> list[Message]:
    """Every record from `start` to the partition's end, as it was when the reading began."""
    reader = consumer(bootstrap, **settings)
    try:
        low, high = reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
        reader.assign([TopicPartition(topic, partition, start)])
        return take(reader, high, position=max(low, start))
    finally:
        reader.close()


def await_end(bootstrap: str, topic: str, end: int, partition: int = 0) -> None:
    """Return when a partition ends there: who sends with acks=0 ends before the broker has all."""
    asker = consumer(bootstrap)
    give_up_at = time.monotonic() + PATIENCE_S
    try:
        place = TopicPartition(topic, partition)
        while (found := asker.get_watermark_offsets(place, timeout=60)[1]) < end:
            assert time.monotonic() < give_up_at, f"{found} of {end} after {PATIENCE_S} s"
    finally:
        asker.close()


def take(reader: Consumer, end: int, *, position: int) -> list[Message]:
    """Records from `position` until offset `end` is reached."""
    records: list[Message] = []
    give_up_at = time.monotonic() + PATIENCE_S
    while position < end:
        assert time.monotonic() < give_up_at, f"at {position} of {end} after {PATIENCE_S} s"
        for record in reader.consume(1000, timeout=0.2):
            if record.error():
                raise AssertionError(record.error())
            offset = record.offset()
            assert offset is not None
            records.append(record)
            position = offset + 1
    return records


def fill(bootstrap: str, topic: str, count: int, *, partition: int = 0) -> None:
    """Records "0", "1", … a second apart, from START_MS on."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for i in range(count):
        producer.produce(topic, b"%d" % i, partition=partition, timestamp=START_MS + i * 1000)
    assert producer.flush(60) == 0
