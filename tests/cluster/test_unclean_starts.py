"""Brokers say when they were not stopped in order, and elect carefully, unless told otherwise."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kazoo.client import KazooClient

from tests.cluster.running import Cluster


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three supervised brokers, whose sessions end with them, for the module."""
    directory: Path = tmp_path_factory.mktemp("unclean")
    with Cluster(directory, options=["--supervised"]) as started:
        yield started


RECORDS = 10


def says_unclean(znodes: KazooClient, broker: int) -> bool:
    """Whether a broker that is registered says that it was not stopped in order."""
    return "unclean" in json.loads(znodes.get(f"/brokers/ids/{broker}")[0])


def test_a_broker_says_that_it_was_killed(
    cluster: Cluster, znodes: KazooClient, topic: str
) -> None:
    """And no more once it has caught up, or was stopped in order then."""
    cluster.until(lambda: not any(says_unclean(znodes, broker) for broker in cluster.brokers))
    cluster.create(topic)
    killed = cluster.leader(topic)
    cluster.brokers[killed].kill()
    cluster.until_led_by_another(topic, killed)
    cluster.start(killed)
    cluster.until(lambda: not says_unclean(znodes, killed))
    cluster.until_whole(topic)
    assert "not stopped in order before: 1 logs" in cluster.brokers[killed].tail(200)
    cluster.brokers[killed].stop()
    cluster.start(killed)
    assert not says_unclean(znodes, killed)


def write(cluster: Cluster, topic: str) -> None:
    """Records in batches of their own, which all in-sync replicas have."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    failures: list[object] = []
    for _ in range(RECORDS):
        producer.produce(topic, b"v", on_delivery=lambda error, _: failures.append(error))
        assert producer.flush(60) == 0
    assert failures == [None] * RECORDS


def readable(cluster: Cluster, topic: str) -> int:
    """How many records consumers find."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": topic, "log_level": 0}
    consumer = Consumer(settings)
    try:
        start, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    finally:
        consumer.close()
    return int(end - start)


def test_a_replica_with_more_than_the_last_in_sync_leads(cluster: Cluster, topic: str) -> None:
    """That one was killed and has lost the end of its log: it does not lead before all answered."""
    cluster.create(topic, replicas=2, min_insync_replicas="1")
    longer, last = cluster.isr(topic)
    write(cluster, topic)
    # Whoever was too slow to be counted has all of it when it is in sync again.
    cluster.until(lambda: cluster.isr(topic) == (longer, last))
    cluster.brokers[longer].kill()
    cluster.until(lambda: cluster.isr(topic) == (last,))
    cluster.brokers[last].kill()
    (log,) = (cluster.brokers[last].log_dirs[0] / f"{topic}-0").glob("*.log")
    os.truncate(log, log.stat().st_size // 2)
    cluster.start(last)
    waits = f"waiting for brokers [{longer}]"
    cluster.until(lambda: any(waits in broker.tail(500) for broker in cluster.brokers.values()))
    cluster.until(lambda: cluster.leader(topic) == -1)
    cluster.start(longer)
    cluster.until(lambda: cluster.leadership(topic) == [(longer, tuple(sorted((longer, last))))])
    cluster.until(lambda: readable(cluster, topic) == RECORDS)
