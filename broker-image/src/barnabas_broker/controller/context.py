"""What the active controller knows: the image, and beside it what no image says.

Kafka's `ControllerContext`. It is the state of the controller's core: transitions read and change
it, and nothing else does while one is under way. What it says follows from the events it has had;
there is no store behind it, and no clock.

Invariants: `deleting` and the topics of `image` have no name in common; `unconfirmed` has the names
of `deleting`; a partition in `unsettled` waits for an election that the store has refused.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from barnabas_broker.cluster.image import (
    NO_LEADER,
    OWN_SOFTWARE,
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.controller.careful_election import Ends, waits
from barnabas_broker.controller.election_context import ElectionContext
from barnabas_broker.controller.elections import LiveBrokers
from barnabas_broker.controller.isr_changes import stored
from barnabas_broker.controller.partition_index import PartitionIndex
from barnabas_broker.controller.registrations import unclean_shutdowns
from barnabas_broker.controller.target_state import TargetState
from barnabas_broker.controller.topics import TakenNames, TopicDefaults
from barnabas_kafka.ids import TopicPartition


class ControllerSettings(Protocol):
    """What the settings in effect say about elections and topics."""

    @property
    def elects_carefully(self) -> bool:
        """Whether replicas are asked before one is elected that may have lost its end."""

    @property
    def deletion_enabled(self) -> bool:
        """Whether topics may be deleted."""

    @property
    def topic_defaults(self) -> TopicDefaults:
        """What topics have that say nothing else."""

    def elects_uncleanly(self, overrides: Mapping[str, str]) -> bool:
        """Whether a topic with these settings may have a leader that was not in sync."""

    def check_topic(self, name: str, overrides: Mapping[str, str]) -> None:
        """Raise KafkaError INVALID_CONFIG unless a topic can have these settings."""


@dataclass(slots=True, kw_only=True)
class ControllerContext:
    """The state of the core. `epoch` is that of this controller, 0 while it is none.

    `stale` says that a write has failed with an unknown outcome, and not
    everything has been read again since.
    """

    broker_id: int
    settings: ControllerSettings
    random: Random
    image: MetadataImage
    epoch: int = 0
    stale: bool = False
    #: brokers in controlled shutdown
    stopping: frozenset[int] = frozenset()
    #: whether no other broker can be a member of the cluster
    alone: bool = False
    #: topics being deleted, and the brokers that have not confirmed it yet
    deleting: dict[str, TopicImage] = field(default_factory=dict)
    unconfirmed: dict[str, set[int]] = field(default_factory=dict)
    #: those topics whose logs this broker has not deleted: it reports it later, or only its
    #: restart tries again
    undeleted: set[str] = field(default_factory=set)
    #: brokers whose replica of a partition cannot be used, for its log directory
    offline: dict[TopicPartition, frozenset[int]] = field(default_factory=dict)
    #: how often each broker has been asked about all its replicas
    asked: dict[int, int] = field(default_factory=dict)
    #: the log end offsets that replicas have reported
    ends: dict[TopicPartition, Ends] = field(default_factory=dict)
    #: partitions whose elections the store has refused, with the brokers restarted before them
    unsettled: dict[TopicPartition, frozenset[int]] = field(default_factory=dict)
    index: PartitionIndex = field(default_factory=PartitionIndex)

    def reset(self) -> None:
        """Forget all that belonged to a time as the controller."""
        self.stopping = frozenset()
        self.deleting = {}
        self.unconfirmed = {}
        self.undeleted = set()
        self.offline = {}  # The next controller sends each broker everything, and each answers.
        self.asked = {}
        self.ends = {}
        self.unsettled = {}
        self.index = PartitionIndex()

    @property
    def view(self) -> TargetState:
        """What is to be true in the cluster."""
        return TargetState(
            self.image,
            dict(self.deleting),
            self.stopping,
            dict(self.asked),
            self._awaited_log_ends(),
        )

    def leading(
        self, *, first_epoch: int, unclean_shutdowns: frozenset[int] = frozenset()
    ) -> ElectionContext:
        """In whose name leaders of topics are elected, as they are read.

        `first_epoch` is the one with which this broker's process registered first: what was
        settled before that was led by another process.
        """
        registered = {id_: each.epoch for id_, each in self.image.brokers.items()}
        # Of itself a controller knows whether it has restarted, or only registered again.
        registered[self.broker_id] = first_epoch
        return ElectionContext(
            self.live(),
            self.epoch,
            self.random,
            self.settings.elects_uncleanly,
            registered,
            self.offline,
            unclean_shutdowns,
        )

    # --- elections

    def live(
        self,
        brokers: Mapping[int, BrokerRegistration] | None = None,
        restarted: Collection[int] = frozenset(),
    ) -> LiveBrokers:
        """The live brokers, among those registered or other `brokers`."""
        brokers = self.image.brokers if brokers is None else brokers
        return LiveBrokers(
            brokers,
            self.stopping,
            restarted,
            unclean_shutdowns(brokers),
            frozenset(id_ for id_, each in brokers.items() if each.software != OWN_SOFTWARE),
            self.settings.elects_carefully,
        )

    @property
    def eligible(self) -> frozenset[int]:
        """The brokers that may lead: alive, and not about to stop."""
        return frozenset(self.image.brokers) - self.stopping

    def eligible_for(self, tp: TopicPartition) -> frozenset[int]:
        """Those brokers whose replica of a partition, if they have one, can be used."""
        return self.eligible - self.offline.get(tp, frozenset())

    def electable_for(self, tp: TopicPartition) -> frozenset[int]:
        """Those brokers that may be elected in order: none while replicas are asked."""
        return frozenset() if self.waits(tp) else self.eligible_for(tp)

    # --- careful elections

    def waits(self, tp: TopicPartition) -> bool:
        """Whether a partition has no leader because its replicas are being asked for their ends."""
        state = self.image.partition(tp)
        if state is None or state.leader != NO_LEADER:
            return False
        return waits(state.replicas, stored(state), self.live())

    def ends_in(self, tp: TopicPartition, leader_epoch: int) -> Ends:
        """What was answered in this leader epoch; nothing that was said in another."""
        ends = self.ends.get(tp)
        return (
            ends if ends is not None and ends.leader_epoch == leader_epoch else Ends(leader_epoch)
        )

    def _awaited_log_ends(self) -> dict[TopicPartition, frozenset[int]]:
        live = self.live()
        if not (live.careful and live.unclean_shutdowns):
            return {}
        return {
            tp: self.ends_in(tp, state.leader_epoch).missing(state.replicas)
            for tp, state in self.leaderless().items()
            if waits(state.replicas, stored(state), live)
        }

    # --- topics and partitions

    def delete(self, topics: Mapping[str, TopicImage]) -> None:
        """Have topics be on their way out until each broker that may have a log has confirmed."""
        self.deleting |= topics
        self.unconfirmed |= {
            name: {self.broker_id} if self.alone else topic.brokers
            for name, topic in topics.items()
        }

    def topic_names(self) -> TakenNames:
        """The names of the topics that there are."""
        self.index.follow(self.image)
        return self.index.names

    def leaderless(self) -> dict[TopicPartition, PartitionState]:
        """The partitions without a leader."""
        self.index.follow(self.image)
        found = {tp: self.image.partition(tp) for tp in self.index.leaderless}
        return {tp: state for tp, state in found.items() if state is not None}

    def moving(self) -> dict[TopicPartition, PartitionState]:
        """The partitions that are being moved."""
        self.index.follow(self.image)
        found = {tp: self.image.partition(tp) for tp in self.index.moving}
        return {tp: state for tp, state in found.items() if state is not None}

    def partitions(self) -> list[TopicPartition]:
        """All there are, but for those of topics that are being deleted."""
        return list(self.image.all_partitions())

    def held_by(self, broker: int) -> list[tuple[TopicPartition, PartitionState]]:
        """What lies on a broker and on others."""
        return [
            (TopicPartition(topic.name, number), state)
            for topic in self.image.topics.values()
            for number, state in enumerate(topic.partitions)
            if broker in state.replicas and len(state.replicas) > 1 and state.leader_epoch >= 0
        ]
