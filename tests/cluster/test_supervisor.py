"""Three supervised brokers whose sessions last longer than any test waits for one to end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from tests.cluster.running import Cluster
from tests.waiting import ANSWER, seconds

NEVER_MS = "600000"
"""More than the ensemble grants: it takes sessions for dead after 40 s."""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers as an image runs them, for the module."""
    directory: Path = tmp_path_factory.mktemp("supervised")
    with Cluster(directory, settings={"zookeeper.session.timeout.ms": NEVER_MS}) as started:
        yield started


def write(cluster: Cluster, topic: str) -> None:
    """A record that all in-sync replicas have."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    failures: list[object] = []
    producer.produce(topic, b"v", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(seconds(ANSWER)) == 0
    assert failures == [None]


def test_the_session_of_a_killed_broker_is_closed(
    cluster: Cluster, znodes: KazooClient, topic: str
) -> None:
    """Others lead without waiting for a timeout, and it comes back without waiting for one."""
    cluster.create(topic)
    write(cluster, topic)
    killed = cluster.leader(topic)
    path = f"/brokers/ids/{killed}"
    owner = znodes.get(path)[1].ephemeralOwner
    broker = cluster.brokers[killed]
    broker.kill()
    cluster.wait_for(
        f"the end of {path}", lambda: znodes.exists(path), until=lambda stat: stat is None
    )
    cluster.wait_for(
        "the supervisor's line in the broker's log",
        broker.tail,
        until=lambda tail: f"0x{owner:x} is closed now" in tail,
    )
    cluster.until_led_by_another(topic, killed)
    write(cluster, topic)
    cluster.start(killed)
    assert znodes.get(path)[1].ephemeralOwner != owner
    assert "Waiting for an ephemeral znode" not in broker.tail(200)
    cluster.until_whole(topic)


def test_a_stopping_broker_closes_its_session_itself(cluster: Cluster, topic: str) -> None:
    """Hands over and closes its session itself: the supervisor has nothing to do or say."""
    cluster.create(topic)
    stopped = cluster.leader(topic)
    broker = cluster.brokers[stopped]
    broker.stop()
    assert broker.exit_code == 0
    words = broker.tail(3)
    assert "Shut down cleanly" in words
    assert "without closing its session" not in words
    cluster.until_led_by_another(topic, stopped)
