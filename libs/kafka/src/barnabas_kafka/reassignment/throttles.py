"""What throttles a reassignment: which replicas, on which brokers (KIP-73).

Two settings of a topic name replicas as `partition:broker`. `leader.replication.throttled.replicas`
has those that others copy from, which are all that a partition had before it moved, for any of
them may lead; `follower.replication.throttled.replicas` has those that are new. Two settings of a
broker say how many bytes a second it sends and fetches for them. The rules are those of Kafka's
`ReassignPartitionsCommand`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import Layout

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
TOPIC_SETTINGS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
BROKER_SETTINGS: Final = (LEADER_RATE, FOLLOWER_RATE)


@dataclass(frozen=True, slots=True)
class Move:
    """Where a partition is copied from and to."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]


def moves(origins: Layout, wanted: Layout) -> dict[TopicPartition, Move]:
    """The move of each wanted partition, from the replicas it has apart from any move."""
    return {
        tp: Move(origins[tp], tuple(each for each in replicas if each not in origins[tp]))
        for tp, replicas in wanted.items()
    }


def throttled_replicas(moving: Mapping[TopicPartition, Move]) -> dict[str, dict[str, str]]:
    """The settings of each topic; none that would be empty."""
    sending: dict[str, list[str]] = {}
    fetching: dict[str, list[str]] = {}
    for tp, move in sorted(moving.items()):
        sending.setdefault(tp.topic, []).extend(_pairs(tp, move.sources))
        fetching.setdefault(tp.topic, []).extend(_pairs(tp, move.destinations))
    return {
        topic: {
            name: ",".join(pairs)
            for name, pairs in (
                (LEADER_REPLICAS, sending[topic]),
                (FOLLOWER_REPLICAS, fetching[topic]),
            )
            if pairs
        }
        for topic in sending
    }


def throttled_brokers(moving: Iterable[Move]) -> list[int]:
    """The brokers that send or fetch."""
    return sorted({each for move in moving for each in (*move.sources, *move.destinations)})


def _pairs(tp: TopicPartition, brokers: Iterable[int]) -> list[str]:
    return [f"{tp.partition}:{broker}" for broker in sorted(brokers)]
