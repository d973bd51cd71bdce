"""Consumers of librdkafka in groups, and topics for them to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.brokers import Broker
from tests.waiting import ANSWER, seconds, wait_for

PARTITIONS = 6
RECORDS = PARTITIONS * 10
ROUNDS = 10
"""How often consumers are polled between two pauses of a wait: a rebalance needs several polls."""


def filled_topic(broker: Broker, test: str) -> str:
    """A topic named after a test, of several partitions, with ten records in each."""
    name = test.replace("[", "-").replace("]", "")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, num_partitions=PARTITIONS)])[name].result(seconds(ANSWER))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for i in range(RECORDS):
        producer.produce(name, b"%d" % i, partition=i % PARTITIONS)
    assert producer.flush(seconds(ANSWER)) == 0
    return name


def consumer(broker: Broker, group: str, *topics: str, **settings: object) -> Consumer:
    """A consumer, of topics or expressions if there are any; underscores stand for dots."""
    made = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # Otherwise librdkafka 2.16 forgets the only broker (its issue 5511).
            "metadata.recovery.strategy": "none",
            "reconnect.backoff.max.ms": 500,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    if topics:
        made.subscribe(list(topics))
    return made


def poll_until(consumers: Sequence[Consumer], done: Callable[[], bool]) -> int:
    """Poll all in turn until `done`; returns how many records came."""
    records = 0

    def poll_and_show() -> tuple[bool, list[list[TopicPartition]]]:
        nonlocal records
        for _ in range(ROUNDS):
            if done():
                return True, []
            for each in consumers:
                message = each.poll(0.02)
                if message is not None and message.error() is None:
                    records += 1
        return False, [each.assignment() for each in consumers]

    wait_for(
        "consumers that are polled, and have these assignments",
        poll_and_show,
        until=lambda it: it[0],
    )
    return records


def committed(broker: Broker, group: str, topic: str) -> list[int]:
    """The group's committed offset of each partition."""
    asked = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    alone = consumer(broker, group)
    offsets = [each.offset for each in alone.committed(asked, timeout=seconds(ANSWER))]
    alone.close()
    return offsets
