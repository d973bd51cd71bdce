"""What a broker that is not the controller knows: the controller's requests, made into images.

Kafka's `ReplicaManager.becomeLeaderOrFollower` and `ZkMetadataCache.updateMetadata`, as far as
they decide. An older controller than the last one is refused, as is a request that was meant
for an earlier registration of this broker (KIP-380). For partitions that lie here a state with an
older leader epoch is never taken.

Settings of topics do not come from the controller; the caller has read them of those that are new.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from barnabas_broker.cluster.image import (
    NO_LEADER,
    BrokerRegistration,
    Endpoint,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID, TopicPartition
from barnabas_kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from barnabas_kafka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

LEADER_DURING_DELETE = -2
"""The leader that UpdateMetadata names for partitions to be forgotten."""

UNKNOWN_EPOCH = -1

PARTITIONS: Final = range(1_000_000)
"""Valid partition indexes. Memory is proportional to the highest index of a topic, and requests
come from the network; a Kafka cluster in ZooKeeper mode has at most 200,000 partitions in total."""

Configs = Mapping[str, Mapping[str, str]]
"""The settings of topics, by name."""

_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_UNKNOWN_PARTITION = PartitionState(
    replicas=(), isr=(), leader=NO_LEADER, leader_epoch=-1, controller_epoch=-1
)
"""A partition below a known one, of which the broker has received nothing yet."""


@dataclass(frozen=True, slots=True)
class FencingEpochs:
    """The epochs that fence requests: the latest controller's, and this broker's own."""

    controller_epoch: int = 0
    broker_epoch: int = UNKNOWN_EPOCH

    def refusal(self, controller_epoch: int, broker_epoch: int) -> ErrorCode | None:
        """Why a controller's request is not obeyed, None if it is."""
        if broker_epoch != UNKNOWN_EPOCH and broker_epoch < self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return None


def with_metadata(
    image: MetadataImage, request: UpdateMetadataRequest, *, broker_id: int, configs: Configs
) -> MetadataImage:
    """The image after UpdateMetadata: brokers replaced, partitions put, deleted topics gone."""
    put, removed = {}, set()
    live = {each.id for each in request.live_brokers}
    for topic_state in request.topic_states:
        if any(state.leader == LEADER_DURING_DELETE for state in topic_state.partition_states):
            if topic_state.topic_name in image.topics:
                removed.add(topic_state.topic_name)
            continue
        states = {
            each.partition_index: _from_metadata(each, live)
            for each in topic_state.partition_states
            if each.partition_index in PARTITIONS
        }
        if not states:
            continue
        topic = _topic(
            image, topic_state, states, configs, broker_id, announced=max(states, default=-1) + 1
        )
        if topic is not image.topics.get(topic_state.topic_name):
            put[topic_state.topic_name] = topic
    brokers = {each.id: _broker(each, image) for each in request.live_brokers}
    return image.with_changes(
        put=tuple(put.values()),
        remove=frozenset(removed),
        brokers=image.brokers if brokers == image.brokers else brokers,
        controller_id=request.controller_id,
    )


def with_leadership(
    image: MetadataImage, request: LeaderAndIsrRequest, *, broker_id: int, configs: Configs
) -> tuple[MetadataImage, dict[TopicPartition, ErrorCode]]:
    """The image after LeaderAndIsr, and for each partition of the request an error, or NONE.

    INCONSISTENT_TOPIC_ID where another topic of that name is here, STALE_CONTROLLER_EPOCH where
    a later leader epoch is known, UNKNOWN_TOPIC_OR_PARTITION where this broker is no replica or
    there is no partition of that number.
    """
    put: list[TopicImage] = []
    answers: dict[TopicPartition, ErrorCode] = {}
    for topic_state in request.topic_states:
        known = image.topics.get(topic_state.topic_name)
        states = {}
        for each in topic_state.partition_states:
            tp = TopicPartition(topic_state.topic_name, each.partition_index)
            state = None if known is None else known.partition(each.partition_index)
            error = _judge(known, topic_state.topic_id, state, each, broker_id)
            answers[tp] = error
            if error is ErrorCode.NONE:
                states[each.partition_index] = _from_leadership(each)
        if states:
            put.append(_topic(image, topic_state, states, configs, broker_id))
    return image.with_changes(put=tuple(put), controller_id=request.controller_id), answers


def _judge(
    topic: TopicImage | None,
    topic_id: UUID,
    known: PartitionState | None,
    requested: LeaderAndIsrPartitionState,
    broker_id: int,
) -> ErrorCode:
    if broker_id not in requested.replicas or requested.partition_index not in PARTITIONS:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is not None and not topic.is_same_as(topic_id):
        return ErrorCode.INCONSISTENT_TOPIC_ID
    if known is None or broker_id not in known.replicas:
        return ErrorCode.NONE
    if requested.leader_epoch < known.leader_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    return ErrorCode.NONE


def _topic(
    image: MetadataImage,
    topic_state: UpdateMetadataTopicState | LeaderAndIsrTopicState,
    states: Mapping[int, PartitionState],
    configs: Configs,
    broker_id: int,
    *,
    announced: int = 0,
) -> TopicImage:
    """Apply partition states to a topic; `announced` is the partition count visible to clients."""
    name, topic_id = topic_state.topic_name, topic_state.topic_id
    known = image.topics.get(name)
    if known is not None and not known.is_same_as(topic_id):
        known = None  # Deleted and created again without a request for either.
    before = () if known is None else known.partitions
    count = max(len(before), max(states, default=-1) + 1)
    partitions = [*before, *[_UNKNOWN_PARTITION] * (count - len(before))]
    for number, state in states.items():
        partitions[number] = _newer(partitions[number], state, broker_id)
    if known is not None:
        announced = max(announced, len(before) if known.announced is None else known.announced)
    shown = None if announced == count else announced
    if known is None:
        return TopicImage(name, topic_id, tuple(partitions), configs.get(name, {}), shown)
    same_id = topic_id in (known.id, ZERO_UUID)
    if same_id and tuple(partitions) == before and shown == known.announced:
        return known
    return replace(
        known,
        id=known.id if topic_id == ZERO_UUID else topic_id,
        partitions=tuple(partitions),
        announced=shown,
    )


def _newer(known: PartitionState, received: PartitionState, broker_id: int) -> PartitionState:
    """The received state, unless the partition lies here and the known one is later."""
    if broker_id not in known.replicas or known.leader_epoch < received.leader_epoch:
        return received
    if (
        known.leader_epoch > received.leader_epoch
        or known.partition_epoch > received.partition_epoch
    ):
        return known
    # UpdateMetadata does not have these, and in one leader epoch LeaderAndIsr comes first.
    if received.replicas == known.replicas and not (received.adding or received.removing):
        return replace(
            received, adding=known.adding, removing=known.removing, recovering=known.recovering
        )
    return received


def _from_metadata(state: UpdateMetadataPartitionState, live: Collection[int]) -> PartitionState:
    return PartitionState(
        replicas=tuple(state.replicas),
        isr=tuple(state.isr),
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        controller_epoch=state.controller_epoch,
        partition_epoch=state.zk_version,
        offline=tuple(each for each in state.offline_replicas if each in live),
    )


def _from_leadership(state: LeaderAndIsrPartitionState) -> PartitionState:
    return PartitionState(
        replicas=tuple(state.replicas),
        isr=tuple(state.isr),
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        controller_epoch=state.controller_epoch,
        adding=tuple(state.adding_replicas),
        removing=tuple(state.removing_replicas),
        partition_epoch=state.partition_epoch,
        recovering=state.leader_recovery_state != 0,
    )


def _broker(received: UpdateMetadataBroker, image: MetadataImage) -> BrokerRegistration:
    endpoints = tuple(
        Endpoint(
            endpoint.listener,
            endpoint.host,
            endpoint.port,
            _SECURITY_PROTOCOLS[endpoint.security_protocol],
        )
        for endpoint in received.endpoints
    )
    epoch = received.epoch
    known = image.brokers.get(received.id)
    if epoch == UNKNOWN_EPOCH and known is not None and known.endpoints == endpoints:
        epoch = known.epoch  # Apache's controllers do not say it.
    return BrokerRegistration(received.id, endpoints, received.rack, epoch, received.software)
