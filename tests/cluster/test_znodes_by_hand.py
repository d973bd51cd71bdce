"""A topic that an operator has removed from ZooKeeper by hand, as old notes tell to.

`zkCli`'s `deleteall /config/topics/T; deleteall /brokers/topics/T` leave its records on every disk.
"""

from __future__ import annotations

from uuid import UUID

from confluent_kafka import Consumer, Producer, TopicPartition
from kazoo.client import KazooClient

from barnabas_kafka.protocol.messages.metadata import MetadataResponse
from tests.clients.wire import Wire, metadata
from tests.cluster.load import read_all
from tests.cluster.running import Cluster, move_controller
from tests.waiting import ANSWER, seconds

PARTITIONS = 3
RECORDS = 60
METADATA_VERSION = 12


def test_a_topic_is_made_again_over_stray_directories(
    cluster: Cluster, znodes: KazooClient, topic: str
) -> None:
    """All tell of the new topic, which has none of the old records; those are set aside."""
    cluster.create(topic, PARTITIONS)
    write(cluster, topic, "old")
    (old,) = {told_id(cluster, broker, topic) for broker in cluster.brokers}
    assert old is not None
    for root in ("/config/topics", "/brokers/topics"):
        znodes.delete(f"{root}/{topic}", recursive=True)
    others = {*cluster.brokers} - {cluster.known_controller()}
    move_controller(cluster, znodes, *others)
    for broker in cluster.brokers:
        cluster.brokers[broker].stop()
        cluster.start(broker)
        cluster.start_missing()
    assert {told_id(cluster, broker, topic) for broker in cluster.brokers} == {None}

    cluster.create(topic, PARTITIONS)
    reported = {told_id(cluster, broker, topic) for broker in cluster.brokers}
    assert len(reported) == 1
    assert reported.isdisjoint({old, None})
    assert ends(cluster, topic) == [(0, 0)] * PARTITIONS
    new = write(cluster, topic, "new")
    for broker in cluster.brokers:
        cluster.brokers[broker].stop()
        cluster.start(broker)
        cluster.until_whole(topic)
        assert values(cluster, topic) == new
    for broker, it in cluster.brokers.items():
        assert b"old" not in b"".join(cluster.content(broker, topic, n) for n in range(PARTITIONS))
        strays = list(it.log_dirs[0].glob(f"{topic}-?.*-stray"))
        assert len(strays) == PARTITIONS
        assert all(b"old" in log.read_bytes() for path in strays for log in path.glob("*.log"))


def told_id(cluster: Cluster, broker: int, topic: str) -> UUID | None:
    """The id by which a broker knows a topic, if it knows one."""
    with Wire(cluster.brokers[broker].bootstrap) as wire:
        (found,) = wire.ask(metadata(topic), MetadataResponse, METADATA_VERSION).topics
    return None if found.error_code else found.topic_id


def ends(cluster: Cluster, topic: str) -> list[tuple[int, int]]:
    """First offset and end of each partition."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": topic, "log_level": 0})
    try:
        return [
            consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=seconds(ANSWER))
            for index in range(PARTITIONS)
        ]
    finally:
        consumer.close()


def write(cluster: Cluster, topic: str, word: str) -> list[str]:
    """Records in every partition that all replicas have; their values in order."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    failures: list[object] = []
    written = [f"{word}-{number:02}" for number in range(RECORDS)]
    for number, value in enumerate(written):
        producer.produce(
            topic,
            value.encode(),
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: failures.append(error),
        )
    assert producer.flush(seconds(ANSWER)) == 0
    assert failures == [None] * RECORDS
    return written


def values(cluster: Cluster, topic: str) -> list[str]:
    """All that can be read, which is as many records as were written."""
    polls = read_all(cluster.bootstrap, topic, PARTITIONS, expected=RECORDS)
    return sorted(value for poll in polls for _, value in poll.records)
