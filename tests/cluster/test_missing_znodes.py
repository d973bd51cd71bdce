"""A topic without znodes at a real ZooKeeper: the elections of all others go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from tests.cluster.metrics import SETTINGS
from tests.cluster.running import Cluster, move_controller, on_record
from tests.waiting import ATTEMPT_S

REPLICAS = [[2, 0, 1]]


def test_the_leader_of_a_topic_without_znodes_dies(tmp_path: Path) -> None:
    """Others are led at once; `/leaderless-partitions` names this one until it has its znodes."""
    with Cluster(tmp_path, settings=SETTINGS) as cluster, on_record(cluster) as znodes:
        for name in ("gone", "left"):
            new = NewTopic(name, 1, replica_assignment=REPLICAS)
            cluster.change(lambda admin, new=new: admin.create_topics([new]))  # type: ignore[misc]
            cluster.until_in_sync(name, 0, 1, 2)
        move_controller(cluster, znodes, 0)
        cluster.until_controlled_by(0)
        there = list(below(znodes, "/brokers/topics/gone"))
        znodes.delete("/brokers/topics/gone", recursive=True)

        cluster.brokers[2].kill()
        cluster.until_led_by("left", 0)
        assert leaderless(cluster) == {
            "gone": "its leader, broker 2, is away, and no other one is elected yet"
        }
        for path, data in there:
            znodes.create(path, data)
        cluster.until_led_by("gone", 0)
        assert leaderless(cluster) == {}


def below(znodes: KazooClient, path: str) -> Iterator[tuple[str, bytes]]:
    """A znode and all below it, with what they hold."""
    yield path, znodes.get(path)[0]
    for name in znodes.get_children(path):
        yield from below(znodes, f"{path}/{name}")


def leaderless(cluster: Cluster) -> dict[str, str]:
    """The topics that the controller names as without a leader, and why."""
    ready = json.loads((cluster.brokers[0].directory / "ready.json").read_text())
    try:
        with urlopen(f"{ready['admin']}/leaderless-partitions", timeout=ATTEMPT_S) as answer:
            reported = json.load(answer)
            assert reported["led"]
    except HTTPError as refused:
        reported = json.load(refused)
        assert not reported["led"]
    return {each["topic"]: each["reason"] for each in reported["leaderless"]["partitions"]}
