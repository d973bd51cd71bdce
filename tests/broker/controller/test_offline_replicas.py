"""Log directories that fail or fill up: who leads instead, and who is in sync."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas_broker.controller.events import (
    AlterPartitionReceived,
    AutoPreferredReplicaLeaderElection,
    ControlledShutdown,
    ReplicaLeaderElection,
)
from barnabas_broker.controller.isr_changes import InSyncChange, IsrRequest
from barnabas_broker.controller.offline_replicas import (
    StorageAnswer,
    after_answers,
    without_brokers,
)
from barnabas_broker.controller.requests import ElectionType
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.zk.store import CoordinationError, Create, Delete
from barnabas_broker.zk.znodes import (
    LogDirEventZnode,
    PartitionStateZnode,
    ReplicaAssignment,
    TopicAssignment,
    TopicZnode,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from tests.broker.controller.ensemble import NOW_MS, Cluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ONLY = TopicPartition("only", 0)


@pytest.fixture
def cluster() -> Cluster:
    """Three brokers, the first is the controller; two topics."""
    cluster = Cluster(3)
    cluster.create(
        NewTopic(name="t", assignments=[(0, (2, 1, 3)), (1, (1, 3, 2))]),
        NewTopic(name="only", assignments=[(0, (2,))]),
    )
    return cluster


def notes(cluster: Cluster) -> list[str]:
    """Those that nobody has acted on."""
    return cluster.stores[3].children(LogDirEventZnode.ROOT)


def offline(cluster: Cluster, tp: TopicPartition) -> tuple[int, ...]:
    """As each broker tells its clients."""
    state = cluster.image.partition(tp)
    assert state is not None
    return state.offline


@pytest.mark.parametrize("broker", [2, 1])
def test_a_leader_without_its_directory_is_replaced(cluster: Cluster, broker: int) -> None:
    """By one that is in sync; it leaves the in-sync replicas. So it is for the controller's own."""
    tp = T0 if broker == 2 else T1
    cluster.disk(broker, tp, works=False)
    assert cluster.leaders("t")[tp.partition] == ((1, (1, 3)) if broker == 2 else (3, (3, 2)))
    assert offline(cluster, tp) == (broker,)
    assert offline(cluster, T1 if tp is T0 else T0) == ()
    assert notes(cluster) == []


def test_a_follower_without_its_directory_leaves(cluster: Cluster) -> None:
    """Producers do not wait for it."""
    cluster.disk(3, T0, works=False)
    assert cluster.leaders("t") == [(2, (2, 1)), (1, (1, 3, 2))]


def test_the_only_replica_has_no_leader_until_its_directory_is_back(cluster: Cluster) -> None:
    """It stays in sync, for nobody else has anything."""
    cluster.disk(2, ONLY, works=False)
    assert cluster.leaders("only") == [(-1, (2,))]
    cluster.active_controller.catch_up(None, now_ms=NOW_MS)
    assert cluster.leaders("only") == [(-1, (2,))]
    cluster.disk(2, ONLY, works=True)
    assert cluster.leaders("only") == [(2, (2,))]


def test_a_replica_in_a_full_directory_gets_no_leadership_back(cluster: Cluster) -> None:
    """Nor lets the replica into the in-sync replicas; both again when it does."""
    cluster.disk(2, T0, works=False)
    state = cluster.image.partition(T0)
    assert state is not None
    back = InSyncChange("t", 0, state.leader_epoch, state.partition_epoch, (1, 3, 2))
    request = IsrRequest(1, cluster.image.brokers[1].epoch, [back], version=2)
    (refused,) = cluster.process(AlterPartitionReceived(request))
    assert refused.error is ErrorCode.INELIGIBLE_REPLICA
    assert cluster.process(AutoPreferredReplicaLeaderElection(0)) == 0
    (error,) = cluster.process(ReplicaLeaderElection(ElectionType.PREFERRED, [T0])).values()
    assert error is not None
    assert error.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.disk(2, T0, works=True)
    assert offline(cluster, T0) == ()
    (granted,) = cluster.process(AlterPartitionReceived(request))
    assert granted.error is ErrorCode.NONE
    assert cluster.process(AutoPreferredReplicaLeaderElection(0)) == 1
    cluster.settle()
    assert cluster.leaders("t")[0] == (2, (1, 3, 2))


def test_other_elections_pass_it_over_too(cluster: Cluster) -> None:
    """As when the new leader is about to stop."""
    cluster.disk(3, T0, works=False)
    cluster.process(ControlledShutdown(2, -1))
    cluster.settle()
    assert cluster.leaders("t")[0] == (1, (1,))
    assert offline(cluster, T0) == (3,)


def test_a_restarted_broker_is_asked_again(cluster: Cluster) -> None:
    """What it said before is over; it may have another disk."""
    cluster.disk(3, T0, works=False)
    cluster.kill(3)
    assert offline(cluster, T0) == ()
    cluster.counted_out.clear()
    cluster.start(3)
    assert offline(cluster, T0) == ()
    cluster.kill(2)
    cluster.counted_out.add((2, T0))
    cluster.start(2)
    assert offline(cluster, T0) == (2,)


def test_the_next_controller_learns_of_it(cluster: Cluster) -> None:
    """All brokers tell it, and what it decides goes by that."""
    cluster.disk(2, T0, ONLY, works=False)
    cluster.kill(1)
    assert cluster.image.controller_id == 2
    assert cluster.leaders("t")[0] == (3, (3,))
    assert (offline(cluster, T0), offline(cluster, ONLY)) == ((2,), (2,))
    assert cluster.leaders("only") == [(-1, (2,))]


def test_topics_that_are_read_again_or_deleted(cluster: Cluster) -> None:
    """What is read anew keeps what is known of disks; a topic made anew has no past."""
    cluster.disk(3, T0, works=False)
    cluster.active_controller.catch_up(None, now_ms=NOW_MS)
    assert offline(cluster, T0) == (3,)
    cluster.counted_out.clear()
    cluster.active_controller.delete_topics(["t"], principal=ANONYMOUS, now_ms=NOW_MS)
    cluster.settle()
    cluster.create(NewTopic(name="t", assignments=[(0, (3, 1))]))
    assert cluster.leaders("t") == [(3, (3, 1))]
    assert offline(cluster, T0) == ()


def test_a_topic_recreated_in_zookeeper_does_not_hide_offline_replicas(
    cluster: Cluster,
) -> None:
    """It has less partitions than the one of which a replica could not be used."""
    cluster.create(NewTopic(name="u", assignments=[(0, (3, 2)), (1, (3, 2))]))
    cluster.disk(3, TopicPartition("u", 1), works=False)
    znode = TopicZnode("u")
    anew = TopicAssignment(UUID(int=9), {0: ReplicaAssignment((3, 2))})
    gone = [
        *(PartitionStateZnode("u", number).path for number in (0, 1)),
        *(PartitionStateZnode("u", number).parent for number in (0, 1)),
        znode.partitions_path,
        znode.path,
    ]
    cluster.ensemble.commit([*map(Delete, gone), Create(znode.path, znode.encode(anew))])
    cluster.active_controller.catch_up(None, now_ms=NOW_MS)
    cluster.settle()
    assert len(cluster.leaders("u")) == 1
    cluster.counted_out.clear()
    cluster.kill(3)
    assert cluster.leaders("u")[0][0] == 2
    assert cluster.leaders("t")[0][0] == 2


def test_notes_of_others_are_read_and_taken_away(cluster: Cluster) -> None:
    """Also those that nobody can read, and of brokers that are not there."""
    for data in (b"{", b'{"version":1,"broker":9,"event":1}'):
        cluster.ensemble.commit([Create(LogDirEventZnode.PREFIX, data, sequential=True)])
    cluster.counted_out.add((2, T0))
    note = b'{"version":1,"broker":2,"event":1}'
    assert LogDirEventZnode.encode(2) == note
    cluster.ensemble.commit([Create(LogDirEventZnode.PREFIX, note, sequential=True)])
    cluster.settle()
    assert notes(cluster) == []
    assert cluster.leaders("t")[0] == (1, (1, 3))


def test_a_note_waits_for_the_connection(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left when everything is read again."""

    def away(*_: object, **__: object) -> None:
        raise CoordinationError("no connection")

    with monkeypatch.context() as broken:
        broken.setattr(cluster.stores[2], "commit", away)
        cluster.disk(2, T0, works=False)
        assert cluster.leaders("t")[0] == (2, (2, 1, 3))
    cluster.controllers[2].catch_up(None, now_ms=NOW_MS)
    cluster.settle()
    assert cluster.leaders("t")[0] == (1, (1, 3))


def test_answers_to_an_earlier_epoch_do_not_count(cluster: Cluster) -> None:
    """Two that could each be done without must not both go by what was true before either."""
    for broker in (2, 3):
        answered = {T0: StorageAnswer(0, usable=False)}
        cluster.active_controller.storage_answered(broker, answered, now_ms=NOW_MS)
    state = cluster.active_controller.image.partition(T0)
    assert state is not None
    assert (state.leader, state.isr, state.offline) == (1, (1, 3), (2,))


def test_unknown_partitions_and_brokers_change_nothing() -> None:
    """A partition that there is none of; a broker of which nothing was said."""
    image = Cluster(1).image
    assert after_answers({}, 1, {T0: StorageAnswer(0, usable=False)}, image) == {}
    known = {T0: frozenset({1, 2}), T1: frozenset({2})}
    assert without_brokers(known, {1}) == {T0: frozenset({2})}
