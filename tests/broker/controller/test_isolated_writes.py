"""Writes of many partitions: one that the store refuses holds back no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas_broker.cluster.availability import leaderless
from barnabas_broker.controller.events import (
    ApiPartitionReassignment,
    ControlledShutdown,
    ElectionsRetried,
    ReplicaLeaderElection,
    TopicDeletion,
)
from barnabas_broker.controller.isolated_writes import commit_each
from barnabas_broker.controller.requests import ElectionType
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.zk.store import Create, Delete, Operation, SetData
from barnabas_broker.zk.znodes import PartitionStateZnode, TopicZnode
from barnabas_kafka.ids import TopicPartition
from barnabas_zookeeper.errors import BadVersionError, NodeExistsError, NoNodeError
from tests.broker.controller.ensemble import NOW_MS, Cluster, Ensemble


def below(cluster: Cluster, path: str) -> Iterator[tuple[str, bytes | None]]:
    """A znode and all below it, with what they hold."""
    store = cluster.stores[1]
    yield path, store.get(path)[0]
    for name in store.children(path):
        yield from below(cluster, f"{path}/{name}")


@pytest.fixture
def cluster() -> Cluster:
    """Three brokers; topics `gone` and `left` are led by the second."""
    made = Cluster(3)
    for name in ("gone", "left"):
        made.create(NewTopic(name=name, assignments=[(0, (2, 3)), (1, (2, 3))]))
    return made


def delete_by_hand(cluster: Cluster, topic: str) -> list[tuple[str, bytes | None]]:
    """What `deleteall /brokers/topics/T` does; returns what was there."""
    znodes = list(below(cluster, TopicZnode(topic).path))
    cluster.ensemble.commit([Delete(path) for path, _ in reversed(znodes)])
    cluster.settle()
    return znodes


def test_a_topic_without_znodes_stops_no_election(cluster: Cluster) -> None:
    """The others are led; of this one it is said that nobody leads it, until it is restored."""
    znodes = delete_by_hand(cluster, "gone")
    cluster.kill(2)
    assert cluster.leaders("left") == [(3, (3,)), (3, (3,))]
    assert cluster.active_controller.unsettled
    assert [each.tp for each in leaderless(cluster.image)] == [
        TopicPartition("gone", number) for number in (0, 1)
    ]
    cluster.process(ElectionsRetried())
    assert cluster.active_controller.unsettled
    cluster.ensemble.commit([Create(path, data) for path, data in znodes])
    cluster.process(ElectionsRetried())
    cluster.settle()
    assert cluster.leaders("gone") == [(3, (3,)), (3, (3,))]
    assert not cluster.active_controller.unsettled


def test_a_partition_without_a_znode_does_not_fail_the_others(cluster: Cluster) -> None:
    """Elections and moves are refused for the partition without a znode alone."""
    epoch = cluster.image.brokers[2].epoch
    assert cluster.process(ControlledShutdown(2, epoch)) == []
    cluster.settle()
    cluster.kill(2)
    cluster.start(2)
    gone, left = TopicPartition("gone", 0), TopicPartition("left", 0)
    delete_by_hand(cluster, "gone")
    moved = cluster.process(ApiPartitionReassignment({gone: (1, 3), left: (1, 3)}))
    assert [tp for tp, refusal in moved.items() if refusal is not None] == [gone]
    elected = cluster.process(ReplicaLeaderElection(ElectionType.PREFERRED, [gone, left]))
    assert elected[gone] is not None


def test_a_state_that_is_missing_does_not_end_a_shutdown(cluster: Cluster) -> None:
    """The broker hands over what it can, and is told of the rest."""
    delete_by_hand(cluster, "gone")
    epoch = cluster.image.brokers[2].epoch
    left = cluster.process(ControlledShutdown(2, epoch))
    assert left == [TopicPartition("gone", number) for number in (0, 1)]
    cluster.settle()
    assert cluster.leaders("left") == [(3, (3,)), (3, (3,))]


def test_one_topic_that_cannot_be_read_does_not_end_the_controller(cluster: Cluster) -> None:
    """The next controller leaves it as it knows it, and leads the others."""
    cluster.ensemble.commit([SetData(PartitionStateZnode("gone", 0).path, b"{")])
    cluster.kill(1, 2)
    assert cluster.active_controller.image.controller_id == 3
    assert cluster.leaders("left") == [(3, (3,)), (3, (3,))]
    assert "gone" in cluster.image.topics


def test_a_deletion_of_which_the_znodes_are_gone_is_finished(cluster: Cluster) -> None:
    """Somebody helped it along by hand."""
    cluster.kill(3)
    cluster.process(TopicDeletion(["gone", "left"]))
    cluster.settle()
    delete_by_hand(cluster, "gone")
    cluster.start(3)
    assert cluster.active_controller.active.context.deleting == {}


def test_groups_that_are_refused() -> None:
    """By reads where these tell it, else by trying; all others are written."""
    ensemble = Ensemble()
    store = ensemble.session()
    store.transaction_bytes_max = 1000
    ensemble.commit([Create("/there", b""), Create("/other", b"")])
    groups: dict[str, list[Operation]] = {
        "missing": [SetData("/missing", b"x")],
        "changed": [SetData("/there", b"x", 7)],
        "exists": [Create("/new-0", b""), Create("/other", b"")],
        **{f"new-{n}": [Create(f"/new-{n}", b"")] for n in range(20)},
    }
    refused = commit_each(store, None, groups, now_ms=NOW_MS)
    assert {key: type(error) for key, error in refused.items()} == {
        "missing": NoNodeError,
        "changed": BadVersionError,
        "exists": NodeExistsError,
    }
    assert len(store.children("/")) == 22
