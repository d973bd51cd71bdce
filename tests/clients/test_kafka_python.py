"""kafka-python: producer, assigned consumer, admin client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic

from tests.clients import START_MS
from tests.clients.brokers import Broker
from tests.waiting import ANSWER, seconds

Content = tuple[bytes | None, bytes | None]


@pytest.fixture
def admin_client(broker: Broker) -> Iterator[KafkaAdminClient]:
    """kafka-python's admin client."""
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


@pytest.mark.parametrize("codec", [None, "gzip", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_round_trip(broker: Broker, topic: str, codec: str | None, idempotent: bool) -> None:
    """Keys, values, headers and timestamps, null ones too; snappy would need another package."""
    sent = [
        (None if i % 5 == 0 else b"k%d" % i, None if i % 5 == 1 else b"v" * i) for i in range(300)
    ]
    settings = {"compression_type": codec, "enable_idempotence": idempotent}
    produce(broker, topic, sent, **settings)
    consume(broker, TopicPartition(topic, 0), sent)


def produce(broker: Broker, topic: str, sent: list[Content], **settings: object) -> None:
    """Send everything and look at the offsets that came back."""
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap, acks="all", linger_ms=5, **settings
    )
    with closing(producer):
        futures = [
            producer.send(
                topic,
                value,
                key,
                headers=[("h", b"%d" % i)],
                partition=0,
                timestamp_ms=START_MS + i,
            )
            for i, (key, value) in enumerate(sent)
        ]
        assert [future.get(60).offset for future in futures] == list(range(len(sent)))


def consume(broker: Broker, partition: TopicPartition, sent: list[Content]) -> None:
    """Read everything from the beginning and ask for offsets in every way."""
    count = len(sent)
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        group_id=None,
        consumer_timeout_ms=int(seconds(ANSWER) * 1000),
    )
    with closing(consumer):
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        found = [next(consumer) for _ in sent]
        assert [(record.key, record.value) for record in found] == sent
        assert [record.timestamp for record in found] == [START_MS + i for i in range(count)]
        assert [dict(record.headers) for record in found] == [
            {"h": b"%d" % i} for i in range(count)
        ]
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: count}
        by_time = consumer.offsets_for_times({partition: START_MS + 100})[partition]
        assert (by_time.offset, by_time.timestamp) == (100, START_MS + 100)
        assert consumer.offsets_for_times({partition: START_MS + count}) == {partition: None}


def test_admin(admin_client: KafkaAdminClient, topic_names: Iterator[str]) -> None:
    """Topics and their settings."""
    name = next(topic_names)
    admin_client.create_topics([NewTopic(name, 2, 1, topic_configs={"retention.ms": "5000"})])
    assert name in admin_client.list_topics()
    admin_client.create_partitions({name: NewPartitions(4)})
    (described,) = admin_client.describe_topics([name])
    assert len(described["partitions"]) == 4
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    assert "5000" in str(admin_client.describe_configs([resource]))
    admin_client.alter_configs(
        [ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "7000"})]
    )
    assert "7000" in str(admin_client.describe_configs([resource]))
    admin_client.delete_topics([name])
    assert name not in admin_client.list_topics()


def test_cluster_and_log_directories(admin_client: KafkaAdminClient, topic: str) -> None:
    """DescribeCluster and DescribeLogDirs."""
    cluster = admin_client.describe_cluster()
    assert len(cluster["brokers"]) == 1
    assert topic in str(admin_client.describe_log_dirs())
