"""Availability of partitions: what a roll asks before each step, and why some have no leader.

A restart is at risk where it would take a partition below what its topic demands although waiting
could prevent that: another replica is on its way back. Where no waiting helps, since a topic has no
more replicas than it needs, the restart cannot be blamed; such partitions are listed, too.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas_broker.cluster.image import (
    NO_LEADER,
    BrokerRegistration,
    MetadataImage,
    PartitionState,
)
from barnabas_kafka.ids import TopicPartition

Held = tuple[TopicPartition, PartitionState, int]
"""A partition that has a replica on the broker, its state, and its min.insync.replicas."""


class Concern(NamedTuple):
    """A partition, and what a restart means for it, or why it has no leader."""

    tp: TopicPartition
    reason: str


class Restart(NamedTuple):
    """What becomes of partitions while the broker is away."""

    at_risk: tuple[Concern, ...]
    unavoidable: tuple[Concern, ...]

    @property
    def safe(self) -> bool:
        """Whether waiting would not make it better."""
        return not self.at_risk


class InSync(NamedTuple):
    """How many of a broker's replicas are in sync, and which are not."""

    replicas: int
    behind: tuple[TopicPartition, ...]

    @property
    def percent(self) -> float:
        """Of the replicas; 100 without any."""
        if not self.replicas:
            return 100.0
        return round(100 * (self.replicas - len(self.behind)) / self.replicas, 1)


def restart_of(broker_id: int, held: Iterable[Held]) -> Restart:
    """What a restart of the broker would mean."""
    at_risk, unavoidable = [], []
    for tp, state, needed in held:
        if broker_id not in state.isr:
            continue
        others = len(state.isr) - 1
        if others >= max(1, needed):
            continue
        if len(state.replicas) - 1 < max(1, needed):
            unavoidable.append(Concern(tp, _without_spare(len(state.replicas), needed)))
        else:
            away = len(state.replicas) - len(state.isr)
            text = f"{others} other in-sync replicas, {away} not in sync, {needed} needed"
            at_risk.append(Concern(tp, text))
    return Restart(tuple(at_risk), tuple(unavoidable))


def _without_spare(replicas: int, needed: int) -> str:
    if replicas == 1:
        return "its only replica is here: it cannot be read or written meanwhile"
    return f"it has {replicas} replicas and needs {needed}: acks=all is refused meanwhile"


def in_sync(broker_id: int, held: Iterable[Held], image: MetadataImage) -> InSync:
    """Which of the broker's replicas are in the ISR.

    A replica that the metadata assigns to this broker is behind until LeaderAndIsr has created it:
    the ISR in UpdateMetadata may date from before the broker's restart.
    """
    states = {tp: state for tp, state, _ in held}
    behind = [tp for tp, state in states.items() if broker_id not in state.isr]
    awaited = [
        tp
        for topic in image.topics.values()
        for number, state in enumerate(topic.partitions)
        if broker_id in state.replicas and (tp := TopicPartition(topic.name, number)) not in states
    ]
    return InSync(len(states) + len(awaited), (*behind, *awaited))


def leaderless(image: MetadataImage) -> Iterator[Concern]:
    """The partitions without a leader, and why, as far as this broker knows.

    A leader that is away leads nothing: no other one could be elected, for the election could not
    be written.
    """
    for topic in image.topics.values():
        for number, state in enumerate(topic.partitions):
            if state.isr and (state.leader == NO_LEADER or state.leader not in image.brokers):
                tp = TopicPartition(topic.name, number)
                yield Concern(tp, why_leaderless(state, image.brokers))


def why_leaderless(state: PartitionState, brokers: Mapping[int, BrokerRegistration]) -> str:
    """Why a partition has no leader: what keeps each of its in-sync replicas from leading."""
    if state.leader != NO_LEADER:
        return f"its leader, broker {state.leader}, is away, and no other one is elected yet"
    return "; ".join(
        f"in-sync replica {broker} {_hindrance(broker, state.offline, brokers)}"
        for broker in state.isr
    )


def _hindrance(
    broker: int, offline: Container[int], brokers: Mapping[int, BrokerRegistration]
) -> str:
    registered = brokers.get(broker)
    if registered is None:
        return "is away"
    if broker in offline:
        return "is in a log directory that is offline"
    if registered.unclean:
        return "was not stopped in order and may lack its end: others are asked for theirs"
    return "is alive and about to lead, or to stop"
