"""Reading through librdkafka without groups, for tests that check what another client wrote."""

from __future__ import annotations

from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.clients import START_MS
from tests.waiting import ANSWER, ATTEMPT_S, seconds, wait_for


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
        low, high = reader.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=seconds(ANSWER)
        )
        reader.assign([TopicPartition(topic, partition, start)])
        return take(reader, high, position=max(low, start))
    finally:
        reader.close()


def await_end(bootstrap: str, topic: str, end: int, partition: int = 0) -> None:
    """Return when a partition ends there: who sends with acks=0 ends before the broker has all."""
    asker = consumer(bootstrap)
    place = TopicPartition(topic, partition)
    try:
        wait_for(
            f"the end offset of {topic}-{partition}, to be {end}",
            lambda: asker.get_watermark_offsets(place, timeout=ATTEMPT_S)[1],
            until=lambda found: found >= end,
            retry=(KafkaException,),
        )
    finally:
        asker.close()


def take(reader: Consumer, end: int, *, position: int) -> list[Message]:
    """Records from `position` until offset `end` is reached."""
    records: list[Message] = []

    def read() -> int:
        nonlocal position
        # Asked for more than there is, librdkafka waits for the rest of the slice.
        while position < end and (batch := reader.consume(min(1000, end - position), 0.2)):
            for record in batch:
                if record.error():
                    raise AssertionError(record.error())
                offset = record.offset()
                assert offset is not None
                records.append(record)
                position = offset + 1
        return position

    wait_for(f"a reader's position, to be {end}", read, until=lambda found: found >= end)
    return records


def consume(reader: Consumer, count: int) -> list[Message]:
    """So many records, or errors, of what a consumer has subscribed to."""
    found: list[Message] = []

    def read() -> int:
        found.extend(reader.consume(count - len(found), 0.2))
        return len(found)

    wait_for(f"consumed records, to be {count}", read, until=lambda number: number == count)
    return found


def fill(bootstrap: str, topic: str, count: int, *, partition: int = 0) -> None:
    """Records "0", "1", … a second apart, from START_MS on."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for i in range(count):
        producer.produce(topic, b"%d" % i, partition=partition, timestamp=START_MS + i * 1000)
    assert producer.flush(seconds(ANSWER)) == 0
