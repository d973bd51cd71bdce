"""Moves on a cluster of controllers: begun, completed, called off, and asked for by old tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas_broker.cluster.image import MetadataImage, PartitionState
from barnabas_broker.controller import isr_changes
from barnabas_broker.controller.events import (
    ApiPartitionReassignment,
    AutoPreferredReplicaLeaderElection,
    ReplicaLeaderElection,
)
from barnabas_broker.controller.isr_changes import InSyncChange, IsrRequest
from barnabas_broker.controller.requests import ElectionType
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.zk.store import Create
from barnabas_broker.zk.znodes import TopicZnode
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from tests.broker.controller.ensemble import NOW_MS, Cluster, Lost

TP = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> Cluster:
    """Four brokers; partition 0 of t lies on the first two."""
    cluster = Cluster(4)
    cluster.create(NewTopic(name="t", assignments=[(0, (1, 2))]))
    return cluster


def catch_up(cluster: Cluster, *isr: int) -> None:
    """The leader of the partition finds these in sync."""
    state = cluster.active_controller.image.partition(TP)
    assert state is not None
    change = InSyncChange("t", 0, state.leader_epoch, state.partition_epoch, isr)
    epoch = cluster.active_controller.image.brokers[state.leader].epoch
    request = IsrRequest(state.leader, epoch, [change], version=1)
    (answer,) = cluster.active_controller.alter_partitions(request, now_ms=NOW_MS)
    assert answer.error is ErrorCode.NONE
    cluster.settle()


def codes(answers: dict[TopicPartition, KafkaError | None]) -> list[ErrorCode]:
    """The errors, NONE where there is none."""
    return [ErrorCode.NONE if error is None else error.code for error in answers.values()]


def test_a_partition_moves(cluster: Cluster) -> None:
    """New replicas copy, then the old ones are deleted; the znode says so at each step."""
    active = cluster.active_controller.active
    assert codes(cluster.process(ApiPartitionReassignment({TP: [3, 4]}))) == [ErrorCode.NONE]
    cluster.settle()
    state = active.under_way()[TP]
    assert (state.replicas, state.adding, state.removing) == ((3, 4, 1, 2), (3, 4), (1, 2))
    catch_up(cluster, 1, 2, 3)
    assert TP in active.under_way()
    catch_up(cluster, 1, 2, 3, 4)
    assert active.under_way() == {}
    moved = cluster.image.partition(TP)
    assert moved is not None
    assert (moved.replicas, moved.isr, moved.leader) == ((3, 4), (3, 4), 3)
    assert cluster.stops[2] == [(TP, True)]
    znode = TopicZnode("t")
    assignment = znode.decode(cluster.stores[1].get(znode.path)[0]).partitions[0]
    assert (assignment.replicas, assignment.adding, assignment.removing) == ((3, 4), (), ())


def test_a_move_is_called_off(cluster: Cluster) -> None:
    """Everything is as before, and what was copied is deleted."""
    cluster.process(ApiPartitionReassignment({TP: [1, 3]}))
    cluster.settle()
    assert codes(cluster.process(ApiPartitionReassignment({TP: None}))) == [ErrorCode.NONE]
    cluster.settle()
    state = cluster.image.partition(TP)
    assert state is not None
    assert (state.replicas, state.isr, state.leader) == ((1, 2), (1, 2), 1)
    assert cluster.stops[3] == [(TP, True)]
    refused = cluster.process(ApiPartitionReassignment({TP: None}))
    assert codes(refused) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]


def test_a_move_goes_on_under_the_next_controller(cluster: Cluster) -> None:
    """What is on record is enough."""
    cluster.process(ApiPartitionReassignment({TP: [2, 3]}))
    cluster.settle()
    cluster.kill(1)
    assert cluster.active_controller.image.controller_id != 1
    catch_up(cluster, 2, 3)
    state = cluster.image.partition(TP)
    assert state is not None
    assert (state.replicas, state.isr, state.leader) == ((2, 3), (2, 3), 2)


@pytest.mark.parametrize(
    ("tp", "replicas", "expected"),
    [
        (TP, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TP, [3, 3], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TP, [3, -1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TP, [3, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TP, [1, 2, 3], ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicPartition("t", 1), [3], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_moves_that_are_refused(
    cluster: Cluster, tp: TopicPartition, replicas: list[int], expected: ErrorCode
) -> None:
    """And nothing is changed."""
    before = cluster.image.topics
    answers = cluster.process(ApiPartitionReassignment({tp: replicas}, factor_may_change=False))
    assert codes(answers) == [expected]
    assert cluster.image.topics is before


def test_requested_elections(cluster: Cluster) -> None:
    """The preferred leader, or any that is left; why not, where it cannot be."""
    cluster.kill(1)
    preferred, unclean = ElectionType.PREFERRED, ElectionType.UNCLEAN
    refused = cluster.process(ReplicaLeaderElection(preferred, [TP, TopicPartition("x", 0)]))
    assert codes(refused) == [
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert codes(cluster.process(ReplicaLeaderElection(unclean, [TP]))) == [
        ErrorCode.ELECTION_NOT_NEEDED
    ]
    assert cluster.process(ReplicaLeaderElection(unclean, None)) == {}
    cluster.kill(2)
    assert cluster.active_controller.image.partition(TP) is not None
    assert codes(cluster.process(ReplicaLeaderElection(unclean, [TP]))) == [
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    ]
    cluster.start(1)
    assert codes(cluster.process(ReplicaLeaderElection(unclean, None))) == [ErrorCode.NONE]
    cluster.settle()
    state = cluster.active_controller.image.partition(TP)
    assert state is not None
    assert (state.leader, state.isr, state.recovering) == (1, (1,), True)


def test_leadership_goes_back_where_too_little_of_it_is_left(cluster: Cluster) -> None:
    """Not where the share that is led by others is as large as it may be."""
    cluster.create(NewTopic(name="u", assignments=[(0, (3, 4)), (1, (3, 4))]))
    cluster.kill(3)
    cluster.start(3)
    for number in range(2):
        state = cluster.image.topics["u"].partitions[number]
        change = InSyncChange("u", number, state.leader_epoch, state.partition_epoch, (4, 3))
        request = IsrRequest(4, cluster.image.brokers[4].epoch, [change], version=1)
        cluster.active_controller.alter_partitions(request, now_ms=NOW_MS)
        cluster.settle()
    assert cluster.process(AutoPreferredReplicaLeaderElection(100)) == 0
    assert cluster.process(AutoPreferredReplicaLeaderElection(99)) == 2
    cluster.settle()
    assert [state.leader for state in cluster.image.topics["u"].partitions] == [3, 3]
    assert cluster.process(AutoPreferredReplicaLeaderElection(0)) == 0


def test_requests_of_zookeeper_tools_are_executed(cluster: Cluster) -> None:
    """In znodes, which stay until it is done; nonsense is taken away."""
    path = "/admin/reassign_partitions"
    wish = {"topic": "t", "partition": 0, "replicas": [3, 1]}
    data = json.dumps({"version": 1, "partitions": [wish, {**wish, "partition": 7}]}).encode()
    cluster.ensemble.commit([Create(path, data)])
    cluster.settle()
    left = json.loads(cluster.stores[1].get(path)[0] or b"")
    assert left["partitions"] == [wish]
    catch_up(cluster, 1, 2, 3)
    assert cluster.stores[1].exists(path) is None
    assert cluster.leaders("t") == [(1, (1, 3))]
    path = "/admin/preferred_replica_election"
    cluster.ensemble.commit(
        [Create(path, b'{"version":1,"partitions":[{"topic":"t","partition":0}]}')]
    )
    cluster.settle()
    assert cluster.stores[1].exists(path) is None
    assert cluster.leaders("t") == [(3, (1, 3))]
    for path in ("/admin/reassign_partitions", "/admin/preferred_replica_election"):
        cluster.ensemble.commit([Create(path, b"?")])
        cluster.settle()
        assert cluster.stores[1].exists(path) is None


def test_a_change_of_the_isr_looks_at_no_other_partition(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be many thousands, and followers come and go all the time."""

    def partitions(_: MetadataImage) -> Iterator[TopicPartition]:
        raise AssertionError("all partitions are looked at")

    monkeypatch.setattr(MetadataImage, "all_partitions", partitions)
    catch_up(cluster, 1)
    catch_up(cluster, 1, 2)


def test_an_error_with_one_change_of_the_isr_is_that_of_no_other(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is; its leader asks again."""
    cluster.create(NewTopic(name="odd", assignments=[(0, (1, 2))]))
    real = isr_changes.judge

    def faulty(state: PartitionState, change: InSyncChange, **more: Any) -> ErrorCode | None:
        return real(state, change, **more) if change.topic == "t" else ErrorCode(1 // 0)

    monkeypatch.setattr(isr_changes, "judge", faulty)
    epoch = cluster.active_controller.image.brokers[1].epoch
    changes = [InSyncChange(name, 0, 0, 0, (1,)) for name in ("odd", "t")]
    request = IsrRequest(1, epoch, changes, version=1)
    answers = cluster.active_controller.alter_partitions(request, now_ms=NOW_MS)
    assert [it.error for it in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]


@pytest.mark.parametrize("asked", ["election", "move"])
def test_requests_of_zookeeper_tools_are_kept_until_written(cluster: Cluster, asked: str) -> None:
    """A write that fails is tried again; taken away before, nobody would."""
    partition = {"topic": "t", "partition": 0}
    if asked == "move":
        path, partition = "/admin/reassign_partitions", {**partition, "replicas": [1, 3]}
    else:
        path = "/admin/preferred_replica_election"
        cluster.kill(1)
        cluster.start(1)
        catch_up(cluster, 2, 1)
        assert cluster.leaders("t")[0][0] == 2
    store = cluster.stores[cluster.active_controller.image.controller_id]
    data = json.dumps({"version": 1, "partitions": [partition]}).encode()
    store.commit([Create(path, data)], now_ms=NOW_MS)
    controller = cluster.active_controller
    store.losses.append(Lost.REQUEST)
    with pytest.raises(KafkaError):  # And is tried again for that.
        controller.catch_up({path}, now_ms=NOW_MS)
    assert store.exists(path) is not None
    controller.catch_up(None, now_ms=NOW_MS)
    cluster.settle()
    state = cluster.active_controller.image.partition(TP)
    assert state is not None
    if asked == "move":
        assert 3 in state.replicas
    else:
        assert state.leader == 1
        assert store.exists(path) is None
