"""May this broker be restarted, has it caught up, and why has a partition no leader?"""

from dataclasses import replace
from uuid import UUID

import pytest

from barnabas_broker.cluster.availability import Concern, Held, in_sync, leaderless, restart_of
from barnabas_broker.cluster.image import (
    NO_LEADER,
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_kafka.ids import TopicPartition

ME = 1
TP = TopicPartition("orders", 0)


def held(replicas: tuple[int, ...], isr: tuple[int, ...], needed: int = 1) -> Held:
    """A partition that has a replica here."""
    state = PartitionState(replicas=replicas, isr=isr, leader=2, leader_epoch=0, controller_epoch=0)
    return TP, state, needed


@pytest.mark.parametrize(
    ("partition", "at_risk", "unavoidable"),
    [
        (held((1, 2, 3), (1, 2, 3), 2), "", ""),
        (held((1, 2, 3), (2, 3), 2), "", ""),
        (held((1, 2, 3), (1, 2), 1), "", ""),
        (held((1, 2, 3), (1, 2), 2), "1 other in-sync replicas, 1 not in sync, 2 needed", ""),
        (held((1, 2), (1,)), "0 other in-sync replicas, 1 not in sync, 1 needed", ""),
        (held((1,), (1,)), "", "its only replica is here"),
        (held((1, 2), (1, 2), 2), "", "it has 2 replicas and needs 2: acks=all is refused"),
        (held((1, 2, 3), (1, 2), 3), "", "it has 3 replicas and needs 3"),
    ],
)
def test_restart(partition: Held, at_risk: str, unavoidable: str) -> None:
    """Waiting helps where a replica is to come back; where there is none to spare it does not."""
    found = restart_of(ME, [partition])
    for reported, wanted in ((found.at_risk, at_risk), (found.unavoidable, unavoidable)):
        assert [concern.tp for concern in reported] == ([TP] if wanted else [])
        assert all(concern.reason.startswith(wanted) for concern in reported)
    assert found.safe is (at_risk == "")


def image_of(*partitions: PartitionState) -> MetadataImage:
    """A cluster with the topic of `TP`."""
    topic = TopicImage(TP.topic, UUID(int=1), partitions)
    return MetadataImage(cluster_id="c", topics={TP.topic: topic})


def test_in_sync() -> None:
    """The share of replicas that are in sync, and which are not."""
    replicas = [held((1, 2), (1, 2)), held((1, 2), (2,)), held((1,), (1,))]
    named = [(TopicPartition("orders", number), *each[1:]) for number, each in enumerate(replicas)]
    found = in_sync(ME, named, MetadataImage(cluster_id="c"))
    assert (found.replicas, found.percent) == (3, 66.7)
    assert found.behind == (TopicPartition("orders", 1),)
    assert in_sync(ME, [], MetadataImage(cluster_id="c")).percent == 100


def test_replicas_are_behind_until_leader_and_isr() -> None:
    """UpdateMetadata comes first, and its ISR may be of before the restart of this broker."""
    _, assigned, _ = held((1, 2), (1, 2))
    _, elsewhere, _ = held((2, 3), (2, 3))
    image = image_of(assigned, elsewhere)
    found = in_sync(ME, [], image)
    assert (found.replicas, found.behind, found.percent) == (1, (TP,), 0.0)
    assert in_sync(ME, [(TP, assigned, 1)], image).behind == ()


def test_reasons_for_a_leaderless_partition() -> None:
    """What keeps each in-sync replica from leading; what is led is not named."""
    led = PartitionState(replicas=(1,), isr=(1,), leader=1, leader_epoch=0, controller_epoch=0)
    lost = replace(led, replicas=(1, 2, 3), isr=(2, 3), leader=NO_LEADER, offline=(3,))
    doubted = replace(led, isr=(4,), leader=NO_LEADER)
    waiting = replace(led, isr=(1,), leader=NO_LEADER)
    away = replace(led, leader=2)
    topic = TopicImage("orders", UUID(int=1), (led, lost, doubted, waiting, away))
    brokers = {id_: BrokerRegistration(id_, ()) for id_ in (1, 3)}
    brokers[4] = BrokerRegistration(4, (), unclean=True)
    image = MetadataImage(cluster_id="c", brokers=brokers, topics={"orders": topic})
    assert list(leaderless(image)) == [
        Concern(
            TopicPartition("orders", 1),
            "in-sync replica 2 is away; in-sync replica 3 is in a log directory that is offline",
        ),
        Concern(
            TopicPartition("orders", 2),
            "in-sync replica 4 was not stopped in order and may lack its end: others are asked "
            "for theirs",
        ),
        Concern(
            TopicPartition("orders", 3), "in-sync replica 1 is alive and about to lead, or to stop"
        ),
        Concern(
            TopicPartition("orders", 4),
            "its leader, broker 2, is away, and no other one is elected yet",
        ),
    ]
