"""Three broker processes on one ZooKeeper: who controls them, and what becomes of their topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from tests.cluster.running import DEADLINE_S, Cluster
from tests.oracle.apache import run_tool

OLD = "2.8.2"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers in three racks, for the module."""
    with Cluster(tmp_path_factory.mktemp("racks"), racks=("a", "b", "c")) as started:
        yield started


def told_by(cluster: Cluster, broker: int) -> tuple[int, dict[str, list[tuple[int, list[int]]]]]:
    """What one broker tells: the controller, and leader and replicas by topic."""
    found = cluster.admin(cluster.brokers[broker].bootstrap).list_topics(timeout=30)
    topics = {
        name: [(each.leader, each.replicas) for _, each in sorted(topic.partitions.items())]
        for name, topic in found.topics.items()
    }
    return found.controller_id, topics


def agree(cluster: Cluster, *brokers: int) -> bool:
    """Whether these brokers tell the same."""
    first, *others = (told_by(cluster, broker) for broker in brokers)
    return all(told == first for told in others)


def all_in_sync(cluster: Cluster) -> bool:
    """Whether all replicas of all topics are, as the controller tells."""
    controller = cluster.brokers[cluster.known_controller()]
    told = cluster.admin(controller.bootstrap).list_topics(timeout=60)
    return all(
        sorted(each.isrs) == sorted(each.replicas)
        for topic in told.topics.values()
        for each in topic.partitions.values()
    )


def test_all_brokers_tell_the_same(cluster: Cluster) -> None:
    """A topic is created through a broker that is not the controller, over all racks."""
    controller = cluster.known_controller()
    member = next(broker for broker in cluster.brokers if broker != controller)
    through = cluster.brokers[member].bootstrap
    cluster.change(lambda admin: admin.create_topics([NewTopic("same", 6, 3)]), through)
    cluster.until(lambda: "same" in told_by(cluster, member)[1])
    cluster.until(lambda: agree(cluster, *cluster.brokers))
    partitions = told_by(cluster, member)[1]["same"]
    assert sorted(leader for leader, _ in partitions) == [0, 0, 1, 1, 2, 2]
    assert all(sorted(replicas) == [0, 1, 2] for _, replicas in partitions)


def test_a_topic_that_is_deleted_while_a_broker_is_away(
    cluster: Cluster, znodes: KazooClient
) -> None:
    """It is gone for clients at once, on record until that broker has deleted it, too."""
    cluster.create("gone", partitions=2, replicas=3)
    away = next(broker for broker in cluster.brokers if broker != cluster.known_controller())
    cluster.brokers[away].stop()
    cluster.change(lambda admin: admin.delete_topics(["gone"]))
    left = [broker for broker in cluster.brokers if broker != away]
    cluster.until(lambda: all("gone" not in told_by(cluster, each)[1] for each in left))
    assert znodes.exists("/admin/delete_topics/gone") is not None
    cluster.start(away)
    cluster.until(lambda: znodes.exists("/admin/delete_topics/gone") is None)
    assert znodes.exists("/brokers/topics/gone") is None
    assert not list(cluster.brokers[away].log_dirs[0].glob("gone-[0-9]"))


def test_partitions_moved_by_kafkas_tools(cluster: Cluster, tmp_path: Path) -> None:
    """Those of today in the protocol, those of 2.8 in znodes; records move with them."""
    cluster.create("moved", partitions=1, replicas=2, min_insync_replicas="1")
    (leader, isr) = cluster.leadership("moved")[0]
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(50):
        producer.produce("moved", str(number))
    assert producer.flush(DEADLINE_S) == 0
    new = next(broker for broker in cluster.brokers if broker not in isr)
    plan = tmp_path / "plan.json"

    def move(replicas: list[int], main_class: str, *arguments: str, version: str) -> None:
        wanted = {"topic": "moved", "partition": 0, "replicas": replicas}
        plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
        given = (*arguments, "--reassignment-json-file", str(plan), "--execute")
        done = run_tool(main_class, *given, version=version)
        assert "Successfully started" in done.stdout, done.stdout + done.stderr
        cluster.until(lambda: cluster.lies("moved", tuple(replicas)))

    bootstrap = ("--bootstrap-server", cluster.bootstrap)
    move([new, leader], REASSIGN, *bootstrap, version="3.9.1")
    assert cluster.leader("moved") == leader
    # A broker that another test has started again may not be elected before it is in sync.
    cluster.until(lambda: all_in_sync(cluster))
    done = run_tool(ELECT, *bootstrap, "--election-type", "preferred", "--all-topic-partitions")
    assert done.returncode == 0, done.stdout + done.stderr
    cluster.until(lambda: cluster.leader("moved") == new)
    old = next(broker for broker in isr if broker != leader)
    zookeeper = ("--zookeeper", cluster.zookeeper.connect)
    move([old, new], "kafka.admin.ReassignPartitionsCommand", *zookeeper, version=OLD)
    run_tool("kafka.admin.PreferredReplicaLeaderElectionCommand", *zookeeper, version=OLD)
    cluster.until(lambda: cluster.leader("moved") == old)
    log = next(cluster.brokers[old].log_dirs[0].glob("moved-0/*.log"))
    assert log.stat().st_size > 0
