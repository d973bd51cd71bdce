"""Who is elected when the only in-sync replica may have lost its end."""

from __future__ import annotations

import pytest

from barnabas_broker.controller.careful_election import Ends, EndsAnswer, LogEnd, waits
from barnabas_broker.controller.elections import LiveBrokers, settle
from barnabas_broker.controller.events import ApiPartitionReassignment, ReplicaLeaderElection
from barnabas_broker.controller.requests import ElectionType
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from tests.broker.controller.ensemble import NOW_MS, Cluster

ALONE = LeaderAndIsr(-1, 4, (2,), 1)
T0 = TopicPartition("t", 0)
BLIND = {"barnabas.leader.recovery.election.enable": "false"}


@pytest.mark.parametrize(
    ("ends", "live", "leader"),
    [
        ({1: (3, 9), 2: (3, 7), 3: (2, 99)}, {1, 2, 3}, 1),
        ({1: (3, 9), 2: (3, 9), 3: (3, 9)}, {1, 2, 3}, 1),
        ({1: (-1, 0), 2: (3, 7), 3: (3, 6)}, {1, 2, 3}, 2),
        ({1: (3, 9), 2: (3, 7), 3: (3, 6)}, {2, 3}, None),
        ({1: (3, 9), 2: (3, 7)}, {1, 2, 3}, None),
    ],
)
def test_the_longest_log_is_elected(
    ends: dict[int, tuple[int, int]], live: set[int], leader: int | None
) -> None:
    """By epoch, then end, then preference; not before all have answered, nor who is away."""
    add_log_end = Ends(4)
    for broker, (epoch, end) in ends.items():
        add_log_end.add_log_end(broker, LogEnd(epoch, end))
    elected = add_log_end.elect((1, 2, 3), ALONE, live=live, controller_epoch=2)
    assert elected == (None if leader is None else LeaderAndIsr(leader, 5, (leader,), 2))


def test_a_restarted_replica_is_asked_for_its_log_end_again() -> None:
    """What it had before may be gone."""
    add_log_end = Ends(4)
    add_log_end.add_log_end(1, LogEnd(1, 1))
    add_log_end.add_log_end(2, LogEnd(1, 2))
    add_log_end.forget({2, 3})
    assert add_log_end.missing((1, 2, 3)) == {2, 3}


def present(
    *live: int,
    unclean_shutdowns: set[int],
    restarted: set[int] | None = None,
    careful: bool = True,
    silent: set[int] | None = None,
) -> LiveBrokers:
    """Who is there."""
    return LiveBrokers(
        live,
        restarted=restarted or (),
        unclean_shutdowns=unclean_shutdowns,
        silent=silent or (),
        careful=careful,
    )


@pytest.mark.parametrize(
    ("state", "there", "unclean", "expected"),
    [
        (ALONE, present(1, 2, unclean_shutdowns={2}), False, None),
        (ALONE, present(1, 2, unclean_shutdowns={2}, careful=False), False, (2, (2,))),
        (ALONE, present(1, 2, unclean_shutdowns={2}, silent={1}), False, (2, (2,))),
        (ALONE, present(1, 2, unclean_shutdowns={2}), True, (2, (2,))),
        (ALONE, present(1, 2, unclean_shutdowns={1}), False, (2, (2,))),
        (LeaderAndIsr(2, 4, (2,), 1), present(1, 2, unclean_shutdowns={2}), False, None),
        (
            LeaderAndIsr(2, 4, (2,), 1),
            present(1, 2, unclean_shutdowns={2}, restarted={2}),
            False,
            (-1, (2,)),
        ),
        (
            LeaderAndIsr(1, 4, (1, 2), 1),
            present(1, 2, unclean_shutdowns={1, 2}, restarted={1, 2}),
            False,
            (-1, (2,)),
        ),
        (
            LeaderAndIsr(3, 4, (3, 1, 2), 1),
            present(1, 2, unclean_shutdowns={1, 2}),
            False,
            (1, (1, 2)),
        ),
    ],
)
def test_a_sole_in_sync_replica_is_not_elected_blindly(
    state: LeaderAndIsr,
    there: LiveBrokers,
    unclean: bool,
    expected: tuple[int, tuple[int, ...]] | None,
) -> None:
    """If it says that it was not stopped in order, all can answer, and no other may lead."""
    settled = settle((1, 2, 3), state, there, unclean=unclean, controller_epoch=2)
    assert (None if settled is None else (settled.leader, settled.isr)) == expected


def test_a_partition_with_one_replica_does_not_wait() -> None:
    """There is nobody else to ask."""
    there = present(2, unclean_shutdowns={2})
    assert settle((2,), ALONE, there, unclean=False, controller_epoch=2) is not None
    assert not waits((2,), ALONE, there)
    assert waits((1, 2), ALONE, there)
    assert not waits((1, 2), LeaderAndIsr(2, 4, (2,), 1), there)


def emptied(cluster: Cluster) -> None:
    """t-0 is on brokers 2 and 3, and 3, the last in sync, has come back after a crash."""
    cluster.create(NewTopic(name="t", assignments=[(0, (2, 3))]))
    cluster.kill(2)
    cluster.kill(3)
    cluster.start(3, unclean=True)


def test_all_replicas_are_asked(cluster: Cluster) -> None:
    """Whoever is away is waited for, and the longest leads."""
    cluster.ends[3, T0] = LogEnd(1, 5)
    emptied(cluster)
    assert cluster.leaders("t") == [(-1, (3,))]
    cluster.ends[2, T0] = LogEnd(1, 6)
    cluster.start(2)
    assert cluster.leaders("t") == [(2, (2,))]
    assert not cluster.active_controller.active.view.awaited_log_ends


def test_the_log_says_once_how_many_partitions_wait(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker with thousands of partitions does not fill the log; who is waited for is named."""
    cluster.create(NewTopic(name="t", assignments=[(number, (2, 3)) for number in range(12)]))
    for number in range(12):
        cluster.ends[3, TopicPartition("t", number)] = LogEnd(1, 5)
        cluster.ends[2, TopicPartition("t", number)] = LogEnd(1, 6)
    cluster.kill(2)
    cluster.kill(3)
    cluster.start(3, unclean=True)
    cluster.start(2)
    lines = [line for line in caplog.messages if line.startswith("Leader election after")]
    begin = "Leader election after an unclean shutdown of the only in-sync replica: broker=3 "
    ends = ["{3: (1, 5)}", "{3: (1, 5), 2: (1, 6)}"]
    assert lines == [
        f"{begin}{outcome}; logs end at (epoch, offset): "
        + ", ".join(f"t-{number} {each} in leader epoch 2" for number in range(10))
        + " (12)"
        for outcome, each in zip(("waiting for brokers [2]", "broker 2 leads"), ends, strict=True)
    ]


def test_the_next_controller_asks_again(cluster: Cluster) -> None:
    """It has heard nothing of what the one before was told."""
    cluster.ends[3, T0] = LogEnd(1, 5)
    emptied(cluster)
    cluster.kill(1)
    assert cluster.leaders("t") == [(-1, (3,))]
    cluster.ends[2, T0] = LogEnd(1, 4)
    cluster.start(2)
    assert cluster.leaders("t") == [(3, (3,))]


def test_the_next_controller_asks_about_a_leader_that_may_have_restarted(cluster: Cluster) -> None:
    """It leads alone, and says that it was not stopped in order: others may have more."""
    emptied(cluster)
    cluster.ends |= {(2, T0): LogEnd(1, 5), (3, T0): LogEnd(1, 6)}
    cluster.start(2)
    assert cluster.leaders("t") == [(3, (3,))]
    cluster.ends = {(2, T0): LogEnd(1, 7)}
    cluster.kill(1)
    assert cluster.leaders("t") == [(-1, (3,))]
    cluster.ends |= {(3, T0): LogEnd(1, 6)}
    cluster.settle()
    assert cluster.leaders("t") == [(2, (2,))]


def test_log_ends_of_another_epoch_or_registration_are_ignored(cluster: Cluster) -> None:
    """Nor what nobody asked."""
    emptied(cluster)
    controller, epoch = cluster.active_controller, cluster.image.brokers[3].epoch
    now = cluster.image.topics["t"].partitions[0].leader_epoch
    for broker, broker_epoch, leader_epoch in ((3, epoch, now - 1), (3, epoch - 1, now), (9, 1, 1)):
        answered = {T0: EndsAnswer(leader_epoch, LogEnd(1, 5))}
        controller.ends_answered(broker, broker_epoch, answered, now_ms=NOW_MS)
        assert controller.active.view.awaited_log_ends == {T0: {2, 3}}
    answered = {TopicPartition("u", 0): EndsAnswer(0, LogEnd(0, 0))}
    controller.ends_answered(3, epoch, answered, now_ms=NOW_MS)
    controller.ends_answered(3, epoch, {T0: EndsAnswer(now, LogEnd(1, 5))}, now_ms=NOW_MS)
    assert controller.active.view.awaited_log_ends == {T0: {2}}


def test_only_an_unclean_election_that_is_ordered_does_not_wait(cluster: Cluster) -> None:
    """A preferred one leaves the partition alone, and so does a move of it."""
    emptied(cluster)
    answers = cluster.process(ReplicaLeaderElection(ElectionType.PREFERRED, [T0]))
    refused = answers[T0]
    assert refused is not None
    assert refused.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert cluster.process(ApiPartitionReassignment({T0: (3, 1)})) == {T0: None}
    cluster.settle()
    assert cluster.leaders("t") == [(-1, (3,))]
    assert cluster.process(ReplicaLeaderElection(ElectionType.UNCLEAN, [T0])) == {T0: None}
    cluster.settle()
    assert cluster.leaders("t")[0][0] == 3


def test_when_disabled_the_election_is_kafkas() -> None:
    """Whoever is in sync leads."""
    cluster = Cluster(3, BLIND)
    emptied(cluster)
    assert cluster.leaders("t") == [(3, (3,))]


@pytest.fixture
def cluster() -> Cluster:
    """Three brokers that elect carefully; the first is the controller."""
    return Cluster(3)
