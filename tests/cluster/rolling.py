"""Brokers restarted one after the other while clients write, and killed while they control."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

from tests.cluster.load import Load
from tests.cluster.running import Cluster
from tests.waiting import RUN


@dataclass(frozen=True, slots=True)
class Restart:
    """A broker that was away, from when it was told to stop until all replicas were in sync."""

    broker: int
    was_controller: bool
    began: float
    ended: float


def roll(cluster: Cluster, topic: str, load: Load) -> Iterator[Restart]:
    """Stop and start each broker, the next one once all replicas are in sync, as an operator does.

    After each, every partition takes records.
    """
    for broker in sorted(cluster.brokers):
        yield _restart(cluster, topic, load, broker, kill=False)


def kill_controller(cluster: Cluster, topic: str, load: Load) -> Restart:
    """End the process of the broker that is controller (SIGKILL), and start it again."""
    return _restart(cluster, topic, load, cluster.known_controller(), kill=True)


def _restart(cluster: Cluster, topic: str, load: Load, broker: int, *, kill: bool) -> Restart:
    controller = cluster.known_controller()
    began = monotonic()
    if kill:
        cluster.brokers[broker].kill()
        cluster.wait_for_leadership(
            f"leaders of {topic} other than broker {broker}",
            topic,
            lambda found: all(leader not in (broker, -1) for leader, _ in found),
        )
    else:
        cluster.brokers[broker].stop()
    cluster.start_missing()
    cluster.until_whole(topic)
    enough = load.acknowledged() + load.partitions * 10
    cluster.wait_for(
        f"{enough} acknowledged records",
        load.acknowledged,
        until=lambda count: count >= enough,
        within=RUN,
    )
    return Restart(broker, broker == controller, began, monotonic())
