"""What the log tells of partitions that nobody leads."""

from dataclasses import replace
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import NO_LEADER, MetadataImage, PartitionState, TopicImage
from barnabas_broker.controller.leaderless import log_leaderless, lost
from barnabas_kafka.ids import TopicPartition

LED = PartitionState(replicas=(1,), isr=(1,), leader=1, leader_epoch=0, controller_epoch=0)
PARTITIONS = [TopicPartition("orders", number) for number in range(13)]


def image(*partitions: PartitionState) -> MetadataImage:
    """A cluster whose brokers are all away, with one topic."""
    return MetadataImage(
        cluster_id="c", topics={"orders": TopicImage("orders", UUID(int=1), partitions)}
    )


def test_partitions_that_have_lost_their_leaders(caplog: pytest.LogCaptureFixture) -> None:
    """A line for each reason; who had no leader before, or has one, is not told again."""
    had_none = replace(LED, leader=NO_LEADER)
    before = image(had_none, *[LED] * 12)
    now = image(had_none, LED, *[had_none] * 10, replace(had_none, isr=(1, 2)))
    log_leaderless(lost([*PARTITIONS, TopicPartition("gone", 0)], before, now))
    ten = ", ".join(f"orders-{number}" for number in range(2, 12))
    assert [record.getMessage() for record in caplog.records] == [
        f"No leader for partitions {ten} (10): in-sync replica 1 is away",
        (
            "No leader for partitions orders-12 (1): in-sync replica 1 is away;"
            " in-sync replica 2 is away"
        ),
    ]


def test_only_some_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """A broker with thousands of partitions does not fill the log."""
    log_leaderless(lost(PARTITIONS, image(*[LED] * 13), image(*[replace(LED, leader=-1)] * 13)))
    assert caplog.messages == [
        "No leader for partitions "
        + ", ".join(f"orders-{number}" for number in range(10))
        + " (13): in-sync replica 1 is away"
    ]
