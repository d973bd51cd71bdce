"""A broker's settings for stories of transactions, topics for them, and what consumers see."""

from __future__ import annotations

import time

from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients import librdkafka
from tests.clients.brokers import Broker

PARTITIONS = 3
PATIENCE_S = 60
SETTINGS = {
    "broker.id": "0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


def new_topic(broker: Broker, name: str) -> str:
    """A topic of several partitions."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, num_partitions=PARTITIONS)])[name].result(60)
    return name


def text(message: Message) -> str:
    """The value of a record."""
    value = message.value()
    assert value is not None
    return value.decode()


def seen(broker: Broker, topic: str, isolation: str = "read_committed") -> list[str]:
    """All values that a consumer gets up to where it may read, sorted."""
    return sorted(seen_in(broker, topic, PARTITIONS, isolation))


def seen_in(
    broker: Broker,
    topic: str,
    partitions: int,
    isolation: str = "read_committed",
    *,
    patience_s: float = PATIENCE_S,
) -> list[str]:
    """The same of a topic with another number of partitions, as they come."""
    reader = librdkafka.consumer(
        broker.bootstrap, **{"isolation.level": isolation, "enable.partition.eof": True}
    )
    reader.assign([TopicPartition(topic, it, OFFSET_BEGINNING) for it in range(partitions)])
    values, unread = [], set(range(partitions))
    give_up = time.monotonic() + patience_s
    while unread:
        assert time.monotonic() < give_up, broker.tail()
        message = reader.poll(0.5)
        if message is None:
            continue
        error = message.error()
        if error is None:
            values.append(text(message))
        elif error.code() == KafkaError._PARTITION_EOF:
            unread.discard(message.partition())
    reader.close()
    return values
