"""Partitions without leader and those that move, kept by what changes."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from barnabas_broker.cluster.image import NO_LEADER, MetadataImage, PartitionState, TopicImage
from barnabas_broker.controller.partition_index import PartitionIndex
from barnabas_kafka.ids import TopicPartition

STATE = PartitionState((1, 2), (1, 2), 1, 0, 1)
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_it_follows_images_in_any_order() -> None:
    """By the steps between them, or by a comparison; a topic that goes takes its partitions."""
    index = PartitionIndex()
    first = MetadataImage(cluster_id="c").with_changes(
        put=(TopicImage("a", UUID(int=1), (replace(STATE, leader=NO_LEADER), STATE)),)
    )
    index.follow(first)
    assert (list(index.leaderless), list(index.moving)) == ([A0], [])
    second = first.with_partitions({A0: STATE, A1: replace(STATE, adding=(3,))})
    index.follow(second)
    assert (list(index.leaderless), list(index.moving)) == ([], [A1])
    index.follow(replace(first))
    assert (list(index.leaderless), list(index.moving)) == ([A0], [])
    index.follow(second.with_changes(remove=frozenset({"a"})))
    assert (list(index.leaderless), list(index.moving)) == ([], [])
    again = second.with_changes(put=(TopicImage("a", UUID(int=2), (STATE,)),))
    index.follow(second)
    index.follow(again)
    assert (list(index.leaderless), list(index.moving)) == ([], [])
