"""Whether a leader may change its ISR: the controller's response to AlterPartition.

Kafka's `KafkaController.tryProcessAlterPartition` (KIP-497, KIP-704, KIP-841), in its order.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import MetadataImage, PartitionState, TopicImage
from barnabas_broker.invariants import violated
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition

TOPIC_IDS_SINCE = 2
"""From this version of AlterPartition on, topics are by id and INELIGIBLE_REPLICA exists."""


@dataclass(frozen=True, slots=True)
class InSyncChange:
    """What a leader asks for one partition; `topic` is its name, or its id.

    `broker_epochs` are the registrations in which the leader knows the replicas of `isr`, where it
    knows them: leaders that run Apache Kafka in ZooKeeper mode do not.
    """

    topic: str | UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    recovering: bool = False
    broker_epochs: Mapping[int, int] = field(default_factory=dict)

    def outdated(self, image: MetadataImage) -> frozenset[int]:
        """The replicas that have registered again since their last fetch (KIP-903)."""
        registered = {broker: image.brokers.get(broker) for broker in self.broker_epochs}
        return frozenset(
            broker
            for broker, known in registered.items()
            if known is None or known.epoch != self.broker_epochs[broker]
        )


class IsrRequest(NamedTuple):
    """AlterPartition: from which broker, in which of its registrations, by which version."""

    broker_id: int
    broker_epoch: int
    changes: Sequence[InSyncChange]
    version: int


class IsrAnswer(NamedTuple):
    """What became of one change: an error, or the partition's state as it is now."""

    error: ErrorCode
    state: PartitionState | None = None


class Judged(NamedTuple):
    """One change by the image: which partition it is of, and its error, None if it is to be made.

    `tp` is None for a topic id that no topic has.
    """

    tp: TopicPartition | None
    error: ErrorCode | None
    change: InSyncChange


def judge_all(
    request: IsrRequest,
    image: MetadataImage,
    eligible_for: Callable[[TopicPartition], Collection[int]],
) -> list[Judged]:
    """Judge each change of a request, in order; `eligible_for` as `eligible` of `judge`."""
    found = []
    for change in request.changes:
        topic = _topic_of(change, image)
        if topic is None and isinstance(change.topic, UUID):
            found.append(Judged(None, ErrorCode.UNKNOWN_TOPIC_ID, change))
            continue
        tp = TopicPartition(str(change.topic) if topic is None else topic.name, change.partition)
        try:
            error = judge(
                None if topic is None else topic.partition(change.partition),
                change,
                broker_id=request.broker_id,
                eligible=frozenset(eligible_for(tp)) - change.outdated(image),
                version=request.version,
            )
        except Exception as failure:  # The boundary between one partition and the others.
            error = refusal(failure, "AlterPartition", tp).code
        found.append(Judged(tp, error, change))
    assert len(found) == len(request.changes), violated("every change is judged")
    return found


def partitions_of(request: IsrRequest, image: MetadataImage) -> list[TopicPartition]:
    """The partitions of an image that a request names."""
    topics = [(_topic_of(change, image), change.partition) for change in request.changes]
    return [TopicPartition(topic.name, number) for topic, number in topics if topic is not None]


def _topic_of(change: InSyncChange, image: MetadataImage) -> TopicImage | None:
    if isinstance(change.topic, str):
        return image.topic(change.topic)
    return image.topic_by_id(change.topic)


def judge(
    state: PartitionState | None,
    change: InSyncChange,
    *,
    broker_id: int,
    eligible: Collection[int],
    version: int,
) -> ErrorCode | None:
    """Why a change is refused; NONE where it is true already, None where it is to be made.

    `eligible` are the brokers that are alive and not about to stop.
    """
    if state is None or state.leader_epoch < 0:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if change.partition_epoch > state.partition_epoch or change.leader_epoch > state.leader_epoch:
        # The leader knows more than this controller, which another one must have followed.
        return ErrorCode.NOT_CONTROLLER
    if change.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    # Before the partition epoch, so that a request whose answer was lost can be made again.
    if (broker_id, change.isr, change.recovering) == (state.leader, state.isr, state.recovering):
        return ErrorCode.NONE
    if change.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    assert change.leader_epoch == state.leader_epoch, violated(
        "an ISR is changed in the leader epoch that is current"
    )
    assert change.partition_epoch == state.partition_epoch, violated(
        "an ISR is changed by compare-and-set"
    )
    if change.recovering and (len(change.isr) > 1 or not state.recovering):
        return ErrorCode.INVALID_REQUEST
    if not set(change.isr) <= set(eligible).intersection((*state.replicas, *state.isr)):
        # Also a broker that has left the assignment since, where a controller failed before it
        # wrote a state that says so: Apache's leaders would go on no more after INVALID_REQUEST.
        if version < TOPIC_IDS_SINCE:
            return ErrorCode.OPERATION_NOT_ATTEMPTED
        return ErrorCode.INELIGIBLE_REPLICA
    if not _is_possible(state, change.isr, broker_id=broker_id):
        return ErrorCode.INVALID_REQUEST
    return None


def _is_possible(state: PartitionState, isr: tuple[int, ...], *, broker_id: int) -> bool:
    """Whether an ISR is one that the leader can ask for, as Apache's KRaft controllers check.

    The state of the partition would name the broker that asks, and without an ISR no replica could
    be elected any more.
    """
    return broker_id == state.leader and broker_id in isr and len(set(isr)) == len(isr)


def granted(change: InSyncChange, *, broker_id: int, controller_epoch: int) -> LeaderAndIsr:
    """The state that a change which is to be made leads to; the leader epoch stays."""
    return LeaderAndIsr(
        leader=broker_id,
        leader_epoch=change.leader_epoch,
        isr=change.isr,
        controller_epoch=controller_epoch,
        recovering=change.recovering,
    )


def stored(state: PartitionState) -> LeaderAndIsr:
    """A state of an image as its znode says it."""
    return LeaderAndIsr(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        controller_epoch=state.controller_epoch,
        recovering=state.recovering,
    )
