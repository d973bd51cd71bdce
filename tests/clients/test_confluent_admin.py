"""The admin client of librdkafka: topics, partitions, configs, records, offsets, the cluster."""

# mypy: disable-error-code="attr-defined,no-untyped-call,comparison-overlap,unreachable"
# (confluent_kafka.admin re-exports without saying so, and types some enums as their numbers)

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.clients import START_MS
from tests.clients.brokers import Broker
from tests.clients.conftest import MakeTopic
from tests.clients.librdkafka import fill, read_all
from tests.waiting import ANSWER, seconds

TOPIC_CONFIGS = [
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
]


def error_of(refused: pytest.ExceptionInfo[KafkaException]) -> int:
    """The error code the broker gave."""
    code: int = refused.value.args[0].code()
    return code


def configs(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    """What DescribeConfigs says about one resource."""
    resource = ConfigResource(kind, name)
    asked = admin.describe_configs([resource])[resource]
    described: dict[str, ConfigEntry] = asked.result(seconds(ANSWER))
    return described


def change(
    admin: AdminClient,
    name: str,
    *changes: tuple[str, str | None, AlterConfigOpType],
    kind: ResourceType = ResourceType.TOPIC,
) -> None:
    """IncrementalAlterConfigs on one resource."""
    entries = [ConfigEntry(key, value, incremental_operation=op) for key, value, op in changes]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(seconds(ANSWER))


def test_topic_life(admin: AdminClient, topic_names: Iterator[str]) -> None:
    """A topic is created, listed with its partitions, grown, and gone after its deletion."""
    name = next(topic_names)
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(seconds(ANSWER))
    listed = admin.list_topics(name, timeout=seconds(ANSWER)).topics[name]
    assert sorted(listed.partitions) == [0, 1, 2]
    admin.create_partitions([NewPartitions(name, 5)])[name].result(seconds(ANSWER))
    described = admin.describe_topics(TopicCollection([name]))[name].result(seconds(ANSWER))
    assert [partition.id for partition in described.partitions] == [0, 1, 2, 3, 4]
    assert str(described.topic_id) != "AAAAAAAAAAAAAAAAAAAAAA"
    assert not described.is_internal
    for partition in described.partitions:
        assert partition.leader.id == 0
        assert [node.id for node in partition.replicas] == [0]
        assert [node.id for node in partition.isr] == [0]
    admin.delete_topics([name])[name].result(seconds(ANSWER))
    assert name not in admin.list_topics(timeout=seconds(ANSWER)).topics


def create_when_deleted(admin: AdminClient, name: str) -> None:
    """Apache answers a deletion before it is through, and refuses the name until then."""
    for _ in range(100):
        try:
            admin.create_topics([NewTopic(name, 1)])[name].result(seconds(ANSWER))
        except KafkaException as refused:
            if "marked for deletion" not in refused.args[0].str():
                raise
        else:
            return
    raise AssertionError(f"{name} is still there")


def test_recreated_topic_is_another_topic(
    broker: Broker, admin: AdminClient, make_topic: MakeTopic
) -> None:
    """The name may be used again; the id is new and the old records are gone."""
    name = make_topic()
    fill(broker.bootstrap, name, 5)
    first = admin.describe_topics(TopicCollection([name]))[name].result(seconds(ANSWER)).topic_id
    admin.delete_topics([name])[name].result(seconds(ANSWER))
    create_when_deleted(admin, name)
    second = admin.describe_topics(TopicCollection([name]))[name].result(seconds(ANSWER)).topic_id
    assert str(first) != str(second)
    assert read_all(broker.bootstrap, name) == []


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (NewTopic("not/allowed", 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("..", 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("no-partitions", 0), KafkaError.INVALID_PARTITIONS),
        (NewTopic("two-copies", 1, 2), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("twice", 1, replica_assignment=[[0, 0]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("wrong", 1, config={"cleanup.policy": "burn"}), KafkaError.INVALID_CONFIG),
        (NewTopic("unknown", 1, config={"no.such.key": "1"}), KafkaError.INVALID_CONFIG),
        (NewTopic("range", 1, config={"segment.bytes": "13"}), KafkaError.INVALID_CONFIG),
    ],
    ids=lambda part: part.topic[:14] if isinstance(part, NewTopic) else "",
)
def test_topics_that_cannot_be(admin: AdminClient, new: NewTopic, expected: int) -> None:
    """Each impossible topic is refused with Kafka's error and leaves nothing behind."""
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([new])[new.topic].result(seconds(ANSWER))
    assert error_of(refused) == expected
    assert new.topic not in admin.list_topics(timeout=seconds(ANSWER)).topics


def test_topic_that_exists(admin: AdminClient, topic: str) -> None:
    """A second topic of one name is refused, also when only asked for validation."""
    for validate_only in (False, True):
        with pytest.raises(KafkaException) as refused:
            admin.create_topics([NewTopic(topic, 1)], validate_only=validate_only)[topic].result(
                seconds(ANSWER)
            )
        assert error_of(refused) == KafkaError.TOPIC_ALREADY_EXISTS


def test_names_that_collide_in_metrics(admin: AdminClient, make_topic: MakeTopic) -> None:
    """a.b and a_b would share their metrics: the second is refused."""
    make_topic(name="colliding.name")
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic("colliding_name", 1)])["colliding_name"].result(
            seconds(ANSWER)
        )
    assert error_of(refused) == KafkaError.TOPIC_EXCEPTION


def test_validate_only_creates_nothing(admin: AdminClient, topic_names: Iterator[str]) -> None:
    """validate_only answers as if it had been done."""
    name = next(topic_names)
    admin.create_topics([NewTopic(name, 3)], validate_only=True)[name].result(seconds(ANSWER))
    assert name not in admin.list_topics(timeout=seconds(ANSWER)).topics


def test_partitions_only_grow(admin: AdminClient, make_topic: MakeTopic) -> None:
    """Fewer or as many partitions as there are is INVALID_PARTITIONS; an unknown topic unknown."""
    topic = make_topic(partitions=3)
    for count in (2, 3):
        with pytest.raises(KafkaException) as refused:
            admin.create_partitions([NewPartitions(topic, count)])[topic].result(seconds(ANSWER))
        assert error_of(refused) == KafkaError.INVALID_PARTITIONS
    with pytest.raises(KafkaException) as refused:
        admin.create_partitions([NewPartitions("unheard-of", 2)])["unheard-of"].result(
            seconds(ANSWER)
        )
    assert error_of(refused) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_deleting_what_is_not_there(admin: AdminClient) -> None:
    """DeleteTopics of an unknown name says so."""
    with pytest.raises(KafkaException) as refused:
        admin.delete_topics(["unheard-of"])["unheard-of"].result(seconds(ANSWER))
    assert error_of(refused) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_topic_configs(admin: AdminClient, make_topic: MakeTopic) -> None:
    """Overrides are told from defaults; set, append, subtract and delete do what they say."""
    topic = make_topic({"retention.ms": "1000"})
    described = configs(admin, ResourceType.TOPIC, topic)
    assert described["retention.ms"].value == "1000"
    assert described["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert described["segment.bytes"].value == "1073741824"
    assert described["segment.bytes"].source == ConfigSource.DEFAULT_CONFIG.value
    assert described["segment.bytes"].is_default
    assert not described["segment.bytes"].is_read_only
    assert not described["segment.bytes"].is_sensitive

    change(
        admin,
        topic,
        ("cleanup.policy", "compact", AlterConfigOpType.APPEND),
        ("segment.bytes", "1048576", AlterConfigOpType.SET),
        ("retention.ms", None, AlterConfigOpType.DELETE),
    )
    described = configs(admin, ResourceType.TOPIC, topic)
    assert described["cleanup.policy"].value == "delete,compact"
    assert described["segment.bytes"].value == "1048576"
    assert described["retention.ms"].value == "604800000"
    change(admin, topic, ("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT))
    assert configs(admin, ResourceType.TOPIC, topic)["cleanup.policy"].value == "compact"


def test_topic_config_names(admin: AdminClient, topic: str) -> None:
    """DescribeConfigs names every topic setting of Kafka 3.9."""
    assert sorted(configs(admin, ResourceType.TOPIC, topic)) == TOPIC_CONFIGS


def test_wrong_config_changes_nothing(admin: AdminClient, topic: str) -> None:
    """One wrong value refuses the whole change."""
    with pytest.raises(KafkaException) as refused:
        change(
            admin,
            topic,
            ("retention.ms", "1000", AlterConfigOpType.SET),
            ("min.cleanable.dirty.ratio", "7", AlterConfigOpType.SET),
        )
    assert error_of(refused) == KafkaError.INVALID_CONFIG
    assert configs(admin, ResourceType.TOPIC, topic)["retention.ms"].value == "604800000"


def test_config_takes_effect_at_once(broker: Broker, admin: AdminClient, topic: str) -> None:
    """max.message.bytes holds for the next produce request."""
    change(admin, topic, ("max.message.bytes", "200", AlterConfigOpType.SET))
    failures: list[int] = []

    def delivered(error: KafkaError | None, _: Any) -> None:
        if error is not None:
            failures.append(error.code())

    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"x" * 500, on_delivery=delivered)
    assert producer.flush(seconds(ANSWER)) == 0
    assert failures == [KafkaError.MSG_SIZE_TOO_LARGE]


def broker_config_once(admin: AdminClient, name: str, value: str) -> ConfigEntry:
    """The entry once it has this value: Apache learns of its own change by way of ZooKeeper."""
    for _ in range(500):
        entry = configs(admin, ResourceType.BROKER, "0")[name]
        if entry.value == value:
            return entry
    raise AssertionError(f"{name} is still {entry.value}")


def test_broker_configs(admin: AdminClient) -> None:
    """Static, default and dynamic values of the broker, and what may not change at run time."""
    described = configs(admin, ResourceType.BROKER, "0")
    assert described["log.dirs"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert described["log.dirs"].is_read_only
    assert described["num.partitions"].value == "1"
    assert described["log.retention.hours"].value == "168"
    assert not described["log.retention.ms"].is_read_only
    change(
        admin,
        "0",
        ("log.cleaner.io.buffer.load.factor", "0.8", AlterConfigOpType.SET),
        kind=ResourceType.BROKER,
    )
    entry = broker_config_once(admin, "log.cleaner.io.buffer.load.factor", "0.8")
    assert entry.source == ConfigSource.DYNAMIC_BROKER_CONFIG.value
    change(
        admin,
        "0",
        ("log.cleaner.io.buffer.load.factor", None, AlterConfigOpType.DELETE),
        kind=ResourceType.BROKER,
    )
    with pytest.raises(KafkaException) as refused:
        change(
            admin, "0", ("log.dirs", "/nowhere", AlterConfigOpType.SET), kind=ResourceType.BROKER
        )
    assert error_of(refused) == KafkaError.INVALID_REQUEST


def test_delete_records(broker: Broker, admin: AdminClient, topic: str) -> None:
    """Records before an offset are gone for readers and for the earliest offset."""
    fill(broker.bootstrap, topic, 10)
    partition = TopicPartition(topic, 0, 4)
    assert admin.delete_records([partition])[partition].result(seconds(ANSWER)).low_watermark == 4
    assert [record.offset() for record in read_all(broker.bootstrap, topic)] == list(range(4, 10))
    beyond = TopicPartition(topic, 0, 11)
    with pytest.raises(KafkaException) as refused:
        admin.delete_records([beyond])[beyond].result(seconds(ANSWER))
    assert error_of(refused) == KafkaError.OFFSET_OUT_OF_RANGE
    everything = TopicPartition(topic, 0, -1)
    deleted = admin.delete_records([everything])[everything].result(seconds(ANSWER))
    assert deleted.low_watermark == 10
    assert read_all(broker.bootstrap, topic) == []


@pytest.mark.parametrize(
    ("spec", "offset", "timestamp"),
    [
        (OffsetSpec.earliest(), 0, -1),
        (OffsetSpec.latest(), 10, -1),
        (OffsetSpec.max_timestamp(), 9, START_MS + 9000),
        (OffsetSpec.for_timestamp(START_MS + 3500), 4, START_MS + 4000),
        (OffsetSpec.for_timestamp(START_MS + 99000), -1, -1),
    ],
    ids=["earliest", "latest", "max-timestamp", "between", "beyond"],
)
def test_list_offsets(
    broker: Broker, admin: AdminClient, topic: str, spec: OffsetSpec, offset: int, timestamp: int
) -> None:
    """Every way to ask for an offset."""
    fill(broker.bootstrap, topic, 10)
    partition = TopicPartition(topic, 0)
    found = admin.list_offsets({partition: spec})[partition].result(seconds(ANSWER))
    assert (found.offset, found.timestamp) == (offset, timestamp)


def test_describe_cluster(broker: Broker, admin: AdminClient) -> None:
    """One broker, which is the controller, at the address clients use."""
    cluster = admin.describe_cluster().result(seconds(ANSWER))
    assert [(node.id, node.host, node.port) for node in cluster.nodes] == [
        (0, "127.0.0.1", int(broker.bootstrap.split(":")[1]))
    ]
    assert cluster.controller.id == 0
    assert len(cluster.cluster_id) == 22


def test_unknown_topic_in_metadata(admin: AdminClient) -> None:
    """Metadata for a topic that cannot exist is an error of that topic only."""
    found = admin.list_topics("not/allowed", timeout=seconds(ANSWER)).topics["not/allowed"]
    assert found.error is not None
    assert found.error.code() == KafkaError.TOPIC_EXCEPTION
