"""Brokers say when they were not stopped in order, and elect carefully, unless told otherwise."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kazoo.client import KazooClient

from tests.cluster.running import Cluster
from tests.waiting import ANSWER, ATTEMPT_S, seconds


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three supervised brokers, whose sessions end with them, for the module."""
    with Cluster(tmp_path_factory.mktemp("unclean")) as started:
        yield started


RECORDS = 10


def registration(znodes: KazooClient, broker: int) -> dict[str, object]:
    """The registration of a broker, with `unclean` where it was not stopped in order."""
    found: dict[str, object] = json.loads(znodes.get(f"/brokers/ids/{broker}")[0])
    return found


def until_clean(cluster: Cluster, znodes: KazooClient, broker: int) -> None:
    """Wait until a broker is registered as one that was stopped in order or has caught up."""
    cluster.wait_for(
        f"a registration of broker {broker} without `unclean`",
        lambda: registration(znodes, broker),
        until=lambda found: "unclean" not in found,
    )


def test_a_broker_says_that_it_was_killed(
    cluster: Cluster, znodes: KazooClient, topic: str
) -> None:
    """And no more once it has caught up, or was stopped in order then."""
    for broker in cluster.brokers:
        until_clean(cluster, znodes, broker)
    cluster.create(topic)
    killed = cluster.leader(topic)
    cluster.brokers[killed].kill()
    cluster.until_led_by_another(topic, killed)
    cluster.start(killed)
    until_clean(cluster, znodes, killed)
    cluster.until_whole(topic)
    assert "Unclean shutdown detected: 1 logs" in cluster.brokers[killed].tail(200)
    cluster.brokers[killed].stop()
    cluster.start(killed)
    assert "unclean" not in registration(znodes, killed)


def test_a_deletion_that_cannot_finish_does_not_make_starts_unclean(
    cluster: Cluster, znodes: KazooClient, topic: str
) -> None:
    """A broker that has deleted its replica was stopped in order, though others are to delete."""
    for broker in cluster.brokers:
        until_clean(cluster, znodes, broker)
    cluster.create(topic)
    away, stopped, _ = cluster.brokers
    cluster.brokers[away].kill()
    cluster.until_led_by_another(topic, away)
    cluster.change(lambda admin: admin.delete_topics([topic]))
    for broker in cluster.brokers.keys() - {away}:
        cluster.wait_for(
            f"the end of the replica of broker {broker}",
            (cluster.brokers[broker].log_dirs[0] / f"{topic}-0").exists,
            until=lambda there: not there,
        )
    cluster.brokers[stopped].stop()
    cluster.start(stopped)
    assert znodes.exists(f"/admin/delete_topics/{topic}") is not None
    assert "unclean" not in registration(znodes, stopped)


def write(cluster: Cluster, topic: str) -> None:
    """Records in batches of their own, which all in-sync replicas have."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    failures: list[object] = []
    for _ in range(RECORDS):
        producer.produce(topic, b"v", on_delivery=lambda error, _: failures.append(error))
        assert producer.flush(seconds(ANSWER)) == 0
    assert failures == [None] * RECORDS


def readable(cluster: Cluster, topic: str) -> int:
    """How many records consumers find."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": topic, "log_level": 0}
    consumer = Consumer(settings)
    try:
        start, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=ATTEMPT_S)
    finally:
        consumer.close()
    return int(end - start)


def test_a_replica_with_more_than_the_last_in_sync_leads(cluster: Cluster, topic: str) -> None:
    """That one was killed and has lost the end of its log: it does not lead before all answered."""
    cluster.create(topic, replicas=2, min_insync_replicas="1")
    longer, last = cluster.isr(topic)
    write(cluster, topic)
    # Whoever was too slow to be counted has all of it when it is in sync again.
    cluster.until_in_sync(topic, longer, last)
    cluster.brokers[longer].kill()
    cluster.until_in_sync(topic, last)
    cluster.brokers[last].kill()
    (log,) = (cluster.brokers[last].log_dirs[0] / f"{topic}-0").glob("*.log")
    os.truncate(log, log.stat().st_size // 2)
    cluster.start(last)
    waits = f"waiting for brokers [{longer}]"
    cluster.wait_for(
        f"a line of the log with {waits!r}",
        lambda: [
            line
            for broker in cluster.brokers.values()
            for line in broker.tail(500).splitlines()
            if waits in line
        ],
    )
    cluster.until_led_by(topic, -1)
    cluster.start(longer)
    cluster.wait_for_leadership(
        f"broker {longer} as the leader, both in sync",
        topic,
        lambda found: found == [(longer, tuple(sorted((longer, last))))],
    )
    cluster.wait_for(
        f"{RECORDS} readable records",
        lambda: readable(cluster, topic),
        until=lambda count: count == RECORDS,
    )
