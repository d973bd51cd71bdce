"""Sends records and reads topics; also as a program in a pod, where this file is given to Python.

    python -c "$(cat e2e/kafka.py)" send BOOTSTRAP TOPIC SECONDS < records
    python -c "$(cat e2e/kafka.py)" read BOOTSTRAP TOPIC SECONDS > records

SECONDS is how long the brokers may take. Records travel as lines of key and value in base64. Needs
confluent-kafka and nothing of ours.
"""

from __future__ import annotations

import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

# librdkafka's settings by which a client reaches the brokers, and as whom.
Client = Mapping[str, Any]
Record = tuple[bytes, bytes]
# Where, in a topic: partition and offset.
Place = tuple[int, int]
# Ends what hangs, where the caller does not know how fast the machine is.
LIMIT_S = 600.0


class TransferError(Exception):
    """Records that could not be sent or read."""


def send(
    client: Client,
    topic: str,
    records: Iterable[Record],
    advance: Callable[[int], None] = lambda _: None,
    *,
    limit_s: float = LIMIT_S,
) -> dict[Place, Record]:
    """Send all records with acks=all; returns where each one is.

    The last has `limit_s` seconds to be acknowledged. `advance` is told the bytes of each record
    that was acknowledged.
    """
    producer = Producer(
        {
            **client,
            "enable.idempotence": True,
            # Leaders may be changing, and the first requests to a partition then overtake each
            # other ("What no broker can tell" in docs/concepts/durability.md).
            "max.in.flight.requests.per.connection": 1,
            "linger.ms": 5,
            "log_level": 3,
        }
    )
    places: dict[Place, Record] = {}
    failures: list[KafkaError] = []

    def delivered(record: Record, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            places[message.partition() or 0, message.offset() or 0] = record
            advance(len(record[0]) + len(record[1]))

    count = 0
    for record in records:

        def on_delivery(
            error: KafkaError | None, message: Message, record: Record = record
        ) -> None:
            delivered(record, error, message)

        while True:
            try:
                producer.produce(topic, key=record[0], value=record[1], on_delivery=on_delivery)
                break
            except BufferError:  # The queue is full: let some of it leave.
                producer.poll(0.1)
            except KafkaException as error:
                raise TransferError(f"{topic} cannot take {record[0]!r}: {error}") from error
        producer.poll(0)
        count += 1
    waiting = producer.flush(limit_s)
    if failures or waiting or len(places) != count:
        reason = failures[0].str() if failures else f"{waiting} not acknowledged"
        raise TransferError(f"{len(places)} of {count} records reached {topic}: {reason}")
    return places


def read(
    client: Client,
    topic: str,
    advance: Callable[[int], None] = lambda _: None,
    *,
    limit_s: float = LIMIT_S,
) -> dict[Place, Record]:
    """All records that the topic has now, by their places, read in `limit_s` seconds at most.

    `advance` is told their bytes.
    """
    consumer = Consumer(
        {
            "group.id": "barnabas-e2e",
            **client,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 3,
        }
    )
    began = time.monotonic()
    try:
        # A broker that has just started may not have heard of the topic yet.
        while not (found := consumer.list_topics(topic, timeout=limit_s).topics[topic].partitions):
            if time.monotonic() - began > limit_s:
                raise TransferError(f"{topic} has no partitions")
            consumer.poll(0.1)
        partitions = list(found)
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        return _read_to_the_end(consumer, set(partitions), advance, limit_s)
    finally:
        consumer.close()


def _read_to_the_end(
    consumer: Consumer, unfinished: set[int], advance: Callable[[int], None], limit_s: float
) -> dict[Place, Record]:
    places: dict[Place, Record] = {}
    began = time.monotonic()
    while unfinished:
        for message in consumer.consume(1000, 0.2):
            error = message.error()
            partition = message.partition() or 0
            if error is None:
                record = (message.key() or b"", message.value() or b"")
                places[partition, message.offset() or 0] = record
                advance(len(record[0]) + len(record[1]))
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(partition)
            elif error.fatal() or message.topic() is not None:
                raise TransferError(error.str())
            # What concerns no topic concerns the group, which nobody joins here.
        if time.monotonic() - began > limit_s:
            raise TransferError(f"partitions {sorted(unfinished)} were not read to their ends")
    return places


def to_lines(records: Iterable[Record]) -> bytes:
    """Records as lines of text."""
    return b"".join(b64encode(key) + b" " + b64encode(value) + b"\n" for key, value in records)


def from_lines(text: bytes) -> list[Record]:
    """The records of such lines."""
    parts = (line.split(b" ") for line in text.split(b"\n") if line)
    return [(b64decode(key), b64decode(value)) for key, value in parts]


def main(arguments: list[str]) -> int:
    """Send standard input, or write a topic to standard output."""
    verb, bootstrap, topic, limit = arguments
    client = {"bootstrap.servers": bootstrap}
    if verb == "send":
        places = send(client, topic, from_lines(sys.stdin.buffer.read()), limit_s=float(limit))
        sys.stderr.write(f"sent {len(places)} records\n")
    else:
        sys.stdout.buffer.write(to_lines(read(client, topic, limit_s=float(limit)).values()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
