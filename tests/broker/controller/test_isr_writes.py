"""Leaders that write their in-sync replicas themselves, and the controller that reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.controller.events import ControlledShutdown, ReplicaLeaderElection
from barnabas_broker.controller.isr_writes import PARTITIONS_PER_NOTIFICATION, notify_controller
from barnabas_broker.controller.requests import ElectionType
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.zk.store import Create
from barnabas_broker.zk.znodes import IsrChangeZnode
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from tests.broker.controller.ensemble import NOW_MS, Cluster

T0 = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> Cluster:
    """Three brokers; 1 is the controller, and 2 leads t-0."""
    started = Cluster(3)
    started.create(NewTopic(name="t", assignments=[(0, (2, 1, 3))]))
    return started


def write(cluster: Cluster, *isr: int, state: PartitionState | None = None) -> PartitionState:
    """The leader of t-0 writes its in-sync replicas, by the state that it knows."""
    known = state or cluster.active_controller.image.topics["t"].partitions[0]
    wanted = replace(known, isr=isr)
    return cluster.controllers[2].write_in_sync(T0, wanted, now_ms=NOW_MS)


def notes(cluster: Cluster) -> list[str]:
    """Notifications that the controller has not taken away."""
    return cluster.stores[1].children(IsrChangeZnode.ROOT)


def test_the_controller_propagates_an_isr_that_a_leader_wrote(cluster: Cluster) -> None:
    """Once it was notified; the notification is then gone."""
    written = write(cluster, 2, 3)
    assert (written.isr, written.partition_epoch) == ((2, 3), 1)
    cluster.settle()
    assert cluster.leaders("t") == [(2, (2, 1, 3))]
    cluster.controllers[2].notify_controller([T0], now_ms=NOW_MS)
    cluster.settle()
    assert cluster.leaders("t") == [(2, (2, 3))]
    assert cluster.image.topics["t"].partitions[0] == written
    assert notes(cluster) == []


def test_a_leader_that_knows_less_is_refused(cluster: Cluster) -> None:
    """But not where it is its own write that it knows nothing of, or one that is not there."""
    before = cluster.image.topics["t"].partitions[0]
    written = write(cluster, 2, 3)
    assert write(cluster, 2, 3, state=before) == written
    with pytest.raises(KafkaError) as refused:
        write(cluster, 2, state=before)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    gone = TopicPartition("gone", 0)
    with pytest.raises(KafkaError) as refused:
        cluster.controllers[2].write_in_sync(gone, before, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION


def test_elections_go_by_what_was_written_a_moment_ago(cluster: Cluster) -> None:
    """Also where nobody has been notified yet."""
    write(cluster, 2, 3)
    epoch = cluster.image.brokers[2].epoch
    assert cluster.process(ControlledShutdown(2, epoch)) == []
    cluster.settle()
    assert cluster.leaders("t") == [(3, (3,))]
    cluster.kill(2)
    cluster.start(2)
    led_by_3 = cluster.image.topics["t"].partitions[0]
    write(cluster, 3, 2, state=led_by_3)
    answers = cluster.process(ReplicaLeaderElection(ElectionType.PREFERRED, [T0]))
    cluster.settle()
    assert answers == {T0: None}
    assert cluster.leaders("t") == [(2, (3, 2))]


def test_a_leader_that_dies_after_its_write(cluster: Cluster) -> None:
    """The controller is refused by the store, reads the state again, and elects by it."""
    write(cluster, 2, 3)
    cluster.kill(2)
    assert not cluster.active_controller.unsettled
    assert cluster.leaders("t") == [(3, (3,))]


def test_unreadable_isr_notifications_are_deleted(cluster: Cluster) -> None:
    """And those for topics that there are none of."""
    for data in (b"{", IsrChangeZnode.encode([TopicPartition("gone", 3)])):
        cluster.ensemble.commit([Create(IsrChangeZnode.PREFIX, data, sequential=True)])
    cluster.settle()
    assert notes(cluster) == []
    assert cluster.leaders("t") == [(2, (2, 1, 3))]


def test_the_next_controller_reads_what_the_last_one_left(cluster: Cluster) -> None:
    """States at its election, and then the notifications are for nothing."""
    write(cluster, 2, 3)
    cluster.stores[1].heard.clear()
    cluster.controllers[2].notify_controller([T0], now_ms=NOW_MS)
    cluster.kill(1)
    assert cluster.leaders("t") == [(2, (2, 3))]
    assert cluster.stores[2].children(IsrChangeZnode.ROOT) == []


def test_many_partitions_are_split_over_several_notifications(cluster: Cluster) -> None:
    """A znode holds no more."""
    many = [TopicPartition("u", number) for number in range(PARTITIONS_PER_NOTIFICATION + 1)]
    notify_controller(cluster.stores[2], many, now_ms=NOW_MS)
    assert len(notes(cluster)) == 2
