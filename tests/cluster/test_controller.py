"""Three broker processes on one ZooKeeper: who controls them, and what becomes of their topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from barnabas_operator.brokers import AdminBrokers
from tests.cluster.running import Cluster
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, seconds

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
    found = cluster.metadata(bootstrap=cluster.brokers[broker].bootstrap)
    topics = {
        name: [(each.leader, each.replicas) for _, each in sorted(topic.partitions.items())]
        for name, topic in found.topics.items()
    }
    return found.controller_id, topics


def out_of_sync(cluster: Cluster) -> list[str]:
    """The partitions with a replica that is not in sync, in the controller's metadata."""
    controller = cluster.brokers[cluster.known_controller()]
    return [
        f"{name}-{index}"
        for name, topic in cluster.metadata(bootstrap=controller.bootstrap).topics.items()
        for index, each in topic.partitions.items()
        if sorted(each.isrs) != sorted(each.replicas)
    ]


def test_all_brokers_return_the_same_metadata(cluster: Cluster) -> None:
    """A topic is created through a broker that is not the controller, over all racks."""
    controller = cluster.known_controller()
    member = next(broker for broker in cluster.brokers if broker != controller)
    through = cluster.brokers[member].bootstrap
    cluster.change(lambda admin: admin.create_topics([NewTopic("same", 6, 3)]), through)
    found = cluster.wait_for(
        "the same metadata of all brokers, with the topic",
        lambda: [told_by(cluster, broker) for broker in cluster.brokers],
        until=lambda it: "same" in it[0][1] and all(each == it[0] for each in it),
    )
    partitions = found[0][1]["same"]
    assert sorted(leader for leader, _ in partitions) == [0, 0, 1, 1, 2, 2]
    assert all(sorted(replicas) == [0, 1, 2] for _, replicas in partitions)


def test_the_operator_gives_leadership_back_to_preferred_replicas(cluster: Cluster) -> None:
    """What a broker led before it was away it leads again; a second election is no error."""
    cluster.create("preferred", partitions=3, replicas=3)
    before = cluster.leadership("preferred")
    assert {leader for leader, _ in before} == {0, 1, 2}
    cluster.brokers[0].stop()
    cluster.brokers[0].start()
    cluster.until_whole("preferred")
    assert 0 not in {leader for leader, _ in cluster.leadership("preferred")}
    with AdminBrokers(cluster.bootstrap) as brokers:
        brokers.elect_preferred_leaders()
        cluster.wait_for_leadership(
            "the leaders of before", "preferred", lambda found: found == before
        )
        brokers.elect_preferred_leaders()
    assert cluster.leadership("preferred") == before


def test_a_topic_that_is_deleted_while_a_broker_is_away(
    cluster: Cluster, znodes: KazooClient
) -> None:
    """It is gone for clients at once, on record until that broker has deleted it, too."""
    cluster.create("gone", partitions=2, replicas=3)
    away = next(broker for broker in cluster.brokers if broker != cluster.known_controller())
    cluster.brokers[away].stop()
    cluster.change(lambda admin: admin.delete_topics(["gone"]))
    left = [broker for broker in cluster.brokers if broker != away]
    cluster.wait_for(
        "metadata without the topic",
        lambda: [sorted(told_by(cluster, each)[1]) for each in left],
        until=lambda found: all("gone" not in topics for topics in found),
    )
    assert znodes.exists("/admin/delete_topics/gone") is not None
    cluster.start(away)
    cluster.wait_for(
        "the end of /admin/delete_topics/gone",
        lambda: znodes.exists("/admin/delete_topics/gone"),
        until=lambda stat: stat is None,
    )
    assert znodes.exists("/brokers/topics/gone") is None
    assert not list(cluster.brokers[away].log_dirs[0].glob("gone-[0-9]"))


def test_partitions_moved_by_kafkas_tools(cluster: Cluster, tmp_path: Path) -> None:
    """Those of today in the protocol, those of 2.8 in znodes; records move with them."""
    cluster.create("moved", partitions=1, replicas=2, min_insync_replicas="1")
    (leader, isr) = cluster.leadership("moved")[0]
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(50):
        producer.produce("moved", str(number))
    assert producer.flush(seconds(ANSWER)) == 0
    new = next(broker for broker in cluster.brokers if broker not in isr)
    plan = tmp_path / "plan.json"

    def move(replicas: list[int], main_class: str, *arguments: str, version: str) -> None:
        wanted = {"topic": "moved", "partition": 0, "replicas": replicas}
        plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
        given = (*arguments, "--reassignment-json-file", str(plan), "--execute")
        done = run_tool(main_class, *given, version=version)
        assert "Successfully started" in done.stdout, done.stdout + done.stderr
        cluster.until_placed("moved", tuple(replicas))

    bootstrap = ("--bootstrap-server", cluster.bootstrap)
    move([new, leader], REASSIGN, *bootstrap, version="3.9.1")
    assert cluster.leader("moved") == leader
    # A broker that another test has started again may not be elected before it is in sync.
    cluster.wait_for(
        "all replicas in sync", lambda: out_of_sync(cluster), until=lambda found: not found
    )
    done = run_tool(ELECT, *bootstrap, "--election-type", "preferred", "--all-topic-partitions")
    assert done.returncode == 0, done.stdout + done.stderr
    cluster.until_led_by("moved", new)
    old = next(broker for broker in isr if broker != leader)
    zookeeper = ("--zookeeper", cluster.zookeeper.connect)
    move([old, new], "kafka.admin.ReassignPartitionsCommand", *zookeeper, version=OLD)
    run_tool("kafka.admin.PreferredReplicaLeaderElectionCommand", *zookeeper, version=OLD)
    cluster.until_led_by("moved", old)
    log = next(cluster.brokers[old].log_dirs[0].glob("moved-0/*.log"))
    assert log.stat().st_size > 0
