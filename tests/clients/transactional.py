"""A broker's settings for scenarios of transactions, topics for them, and what consumers see."""

from __future__ import annotations

from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients import librdkafka
from tests.clients.brokers import Broker
from tests.waiting import ANSWER, seconds, wait_for

PARTITIONS = 3
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
    admin.create_topics([NewTopic(name, num_partitions=PARTITIONS)])[name].result(seconds(ANSWER))
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
) -> list[str]:
    """The same of a topic with another number of partitions, as they come."""
    return [text(message) for message in messages_in(broker, topic, partitions, isolation)]


def messages_in(
    broker: Broker, topic: str, partitions: int, isolation: str = "read_committed"
) -> list[Message]:
    """All records of a topic up to where a consumer may read, as they come."""
    reader = librdkafka.consumer(
        broker.bootstrap,
        **{
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # For so long a fetch at the end says nothing of the end.
        },
    )
    reader.assign([TopicPartition(topic, it, OFFSET_BEGINNING) for it in range(partitions)])
    found, unread = [], set(range(partitions))

    def read() -> set[int]:
        while unread and (message := reader.poll(0.5)) is not None:
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition() or 0)
        return unread

    wait_for(
        f"partitions of {topic} that are not read to their ends", read, until=lambda it: not it
    )
    reader.close()
    return found
