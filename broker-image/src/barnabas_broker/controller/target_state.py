"""What each broker has to receive when the controller's view of the cluster has changed.

Kafka's `ControllerBrokerRequestBatch`, as one pure function of two views: the state a broker has
acknowledged, and the target. Nothing is queued: a broker that was away, or is slow, receives
the difference between then and now in one go, however much happened in between.

* LeaderAndIsr goes to the replicas of a partition whose leader epoch or replicas have changed. A
  change of the in-sync replicas alone does not: its leader asked for it, and followers need not
  know. A broker whose log directories have changed gets it for all it holds, for the answers.
* UpdateMetadata goes to all, with the partitions that changed, and always with all live brokers.
  A topic that is being deleted has the leader -2 there, upon which brokers forget it.
* StopReplica goes to brokers that no longer hold a partition (with `delete_partition`), and to one
  in controlled shutdown for what it follows (without), so that it does not come back into the ISR.

They are to be sent in this order, each after the answer to the one before; but a new broker
gets UpdateMetadata first, for it must know the leaders that it is to follow.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_broker.cluster.image import (
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from barnabas_kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from barnabas_kafka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

LEADER_DURING_DELETE = -2
"""The leader of partitions that are being deleted: brokers forget these."""

EPOCH_DURING_DELETE = -2
"""The leader epoch in StopReplica for them: it is above any other."""

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""The numbers by which UpdateMetadata calls security protocols."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """What is to be true in the cluster.

    `image` holds the brokers alive, also those in `stopping`, which are in controlled shutdown,
    and the topics but those in `deleting`, by name, which are on their way out. `asked` is how
    often each broker has been asked about all its replicas, which is done by LeaderAndIsr.
    `awaited_log_ends` are the brokers, by partition without leader, that have to report how far
    their logs go before one is elected (`careful_election`).
    """

    image: MetadataImage
    deleting: Mapping[str, TopicImage] = field(default_factory=dict)
    stopping: frozenset[int] = frozenset()
    asked: Mapping[int, int] = field(default_factory=dict)
    awaited_log_ends: Mapping[TopicPartition, frozenset[int]] = field(default_factory=dict)


class Sender(NamedTuple):
    """The controller in whose name requests are made, and the listener that brokers use."""

    controller_id: int
    controller_epoch: int
    listener: str


class Orders(NamedTuple):
    """The requests for one broker, None for those that are not needed."""

    leader_and_isr: LeaderAndIsrRequest | None = None
    update_metadata: UpdateMetadataRequest | None = None
    stop_replica: StopReplicaRequest | None = None


def orders(
    broker: BrokerRegistration, old: TargetState | None, new: TargetState, sender: Sender
) -> Orders:
    """What `broker` has to receive, which has acknowledged `old` (None: nothing by this
    controller).

    A broker that has registered again since `old` has forgotten it.
    """
    before = old
    if before is not None:
        known = before.image.brokers.get(broker.id)
        if known is None or known.epoch != broker.epoch:
            before = None
    changed = list(_changed_topics(before, new))
    asked = before is not None and before.asked.get(broker.id) != new.asked.get(broker.id)
    topics = list(_all_topics(before, new)) if asked else changed
    return Orders(
        leader_and_isr=_leader_and_isr(broker, topics, new, sender, everything=asked),
        update_metadata=_update_metadata(broker, before, changed, new, sender),
        stop_replica=_stop_replica(broker, before, changed, new, sender),
    )


def ends_wanted(broker: int, view: TargetState) -> dict[TopicPartition, int]:
    """The partitions whose log ends a broker is to be asked for, and in which leader epoch."""
    found = {
        tp: view.image.partition(tp) for tp, each in view.awaited_log_ends.items() if broker in each
    }
    return {tp: state.leader_epoch for tp, state in found.items() if state is not None}


def own_stops(
    broker_id: int, old: TargetState | None, new: TargetState
) -> list[tuple[TopicPartition, bool]]:
    """What the controller's own broker holds no more, and whether its log is to be deleted.

    That broker takes the image itself; this is the part of its orders that no image says.
    """
    stops = _stops(broker_id, old, list(_changed_topics(old, new)), new)
    return [(tp, stop.delete_partition) for tp, stop in stops.items()]


class _Changed(NamedTuple):
    """A topic, and those of its partitions that differ: number, state before (or None), state.

    `fresh` says that the broker received other topics before this one was created.
    """

    topic: TopicImage
    partitions: list[tuple[int, PartitionState | None, PartitionState]]
    fresh: bool


def _changed_topics(old: TargetState | None, new: TargetState) -> Iterator[_Changed]:
    """The topics that differ; it costs what differs, and not what there is (`cluster.lineage`)."""
    before = MetadataImage(cluster_id="") if old is None else old.image
    for each in new.image.differences(before):
        partitions = [
            (number, known, state)
            for number, known, state in each.partitions()
            if known != state and state.leader_epoch >= 0
        ]
        if each.after is not None and partitions:
            yield _Changed(each.after, partitions, fresh=old is not None)


def _all_topics(old: TargetState | None, new: TargetState) -> Iterator[_Changed]:
    for name, topic in new.image.topics.items():
        before = None if old is None else old.image.topics.get(name)
        if before is not None and before.id != topic.id:
            before = None
        partitions = [
            (number, None if before is None else before.partition(number), state)
            for number, state in enumerate(topic.partitions)
            if state.leader_epoch >= 0
        ]
        yield _Changed(topic, partitions, fresh=old is not None)


def _leader_and_isr(
    broker: BrokerRegistration,
    changed: Iterable[_Changed],
    new: TargetState,
    sender: Sender,
    *,
    everything: bool,
) -> LeaderAndIsrRequest | None:
    topics = []
    leaders: set[int] = set()
    for each in changed:
        states = []
        for number, known, state in each.partitions:
            if broker.id not in state.replicas:
                continue
            if not everything and not _leadership_differs(known, state):
                continue
            is_new = each.fresh and (known is None or broker.id not in known.replicas)
            states.append(_partition_state(each.topic.name, number, state, is_new=is_new))
            leaders.add(state.leader)
        if states:
            topics.append(
                LeaderAndIsrTopicState(
                    topic_name=each.topic.name, topic_id=each.topic.id, partition_states=states
                )
            )
    if not topics:
        return None
    return LeaderAndIsrRequest(
        controller_id=sender.controller_id,
        controller_epoch=sender.controller_epoch,
        broker_epoch=broker.epoch,
        topic_states=topics,
        live_leaders=_live_leaders(leaders, new, sender.listener),
    )


def _leadership_differs(known: PartitionState | None, state: PartitionState) -> bool:
    return (
        known is None
        or known.leader_epoch != state.leader_epoch
        or known.replicas != state.replicas
        or known.adding != state.adding
        or known.removing != state.removing
    )


def _partition_state(
    topic: str, number: int, state: PartitionState, *, is_new: bool
) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        topic_name=topic,
        partition_index=number,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
        replicas=list(state.replicas),
        adding_replicas=list(state.adding),
        removing_replicas=list(state.removing),
        is_new=is_new,
        leader_recovery_state=int(state.recovering),
    )


def _live_leaders(
    leaders: set[int], new: TargetState, listener: str
) -> list[LeaderAndIsrLiveLeader]:
    found = []
    for leader in sorted(leaders):
        registered = new.image.brokers.get(leader)
        endpoint = None if registered is None else registered.endpoint(listener)
        if endpoint is not None:
            found.append(
                LeaderAndIsrLiveLeader(
                    broker_id=leader, host_name=endpoint.host, port=endpoint.port
                )
            )
    return found


def _update_metadata(
    broker: BrokerRegistration,
    old: TargetState | None,
    changed: Iterable[_Changed],
    new: TargetState,
    sender: Sender,
) -> UpdateMetadataRequest | None:
    topics = [
        UpdateMetadataTopicState(
            topic_name=each.topic.name,
            topic_id=each.topic.id,
            partition_states=[
                _metadata_state(each.topic.name, number, state, new.image)
                for number, _, state in each.partitions
            ],
        )
        for each in changed
    ]
    topics += [_forgotten(topic) for topic in _newly_deleting(old, new)]
    topics += [_forgotten(topic) for topic in _vanished(old, new)]
    if old is not None and not topics and old.image.brokers == new.image.brokers:
        return None
    return UpdateMetadataRequest(
        controller_id=sender.controller_id,
        controller_epoch=sender.controller_epoch,
        broker_epoch=broker.epoch,
        topic_states=topics,
        live_brokers=[_live_broker(each) for each in new.image.brokers.values()],
    )


def _metadata_state(
    topic: str, number: int, state: PartitionState, image: MetadataImage
) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        topic_name=topic,
        partition_index=number,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        zk_version=state.partition_epoch,
        replicas=list(state.replicas),
        offline_replicas=[
            each for each in state.replicas if each not in image.brokers or each in state.offline
        ],
    )


def _forgotten(topic: TopicImage) -> UpdateMetadataTopicState:
    states = [
        UpdateMetadataPartitionState(
            topic_name=topic.name,
            partition_index=number,
            controller_epoch=state.controller_epoch,
            leader=LEADER_DURING_DELETE,
            leader_epoch=EPOCH_DURING_DELETE,
            isr=list(state.isr),
            zk_version=state.partition_epoch,
            replicas=list(state.replicas),
        )
        for number, state in enumerate(topic.partitions)
    ]
    return UpdateMetadataTopicState(
        topic_name=topic.name, topic_id=topic.id, partition_states=states
    )


def _live_broker(broker: BrokerRegistration) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=SECURITY_PROTOCOLS[endpoint.security_protocol],
            )
            for endpoint in broker.endpoints
        ],
        rack=broker.rack,
        software=broker.software,
        epoch=broker.epoch,
    )


def _newly_deleting(old: TargetState | None, new: TargetState) -> list[TopicImage]:
    known = {} if old is None else old.deleting
    return [topic for name, topic in new.deleting.items() if known.get(name) != topic]


def _vanished(old: TargetState | None, new: TargetState) -> list[TopicImage]:
    """Topics whose deletion ended before this broker, which holds no replica, received it."""
    if old is None:
        return []
    return [
        each.before
        for each in new.image.differences(old.image)
        if each.before is not None and each.after is None and each.name not in new.deleting
    ]


def _stop_replica(
    broker: BrokerRegistration,
    old: TargetState | None,
    changed: Iterable[_Changed],
    new: TargetState,
    sender: Sender,
) -> StopReplicaRequest | None:
    stops = _stops(broker.id, old, changed, new)
    if not stops:
        return None
    return StopReplicaRequest(
        controller_id=sender.controller_id,
        controller_epoch=sender.controller_epoch,
        broker_epoch=broker.epoch,
        topic_states=_by_topic(stops),
    )


def _stops(
    broker_id: int, old: TargetState | None, changed: Iterable[_Changed], new: TargetState
) -> dict[TopicPartition, StopReplicaPartitionState]:
    stops: dict[TopicPartition, StopReplicaPartitionState] = {}
    for topic in _newly_deleting(old, new):
        for number, state in enumerate(topic.partitions):
            if broker_id in state.replicas:
                stops[TopicPartition(topic.name, number)] = StopReplicaPartitionState(
                    partition_index=number,
                    leader_epoch=EPOCH_DURING_DELETE,
                    delete_partition=True,
                )
    for each in changed:
        for number, known, state in each.partitions:
            if (
                known is not None
                and broker_id in known.replicas
                and broker_id not in state.replicas
            ):
                stops[TopicPartition(each.topic.name, number)] = StopReplicaPartitionState(
                    partition_index=number, leader_epoch=state.leader_epoch, delete_partition=True
                )
    if old is not None and broker_id in new.stopping and broker_id not in old.stopping:
        # Not what it led until now: that it hands over as any leader does, to be asked on.
        for tp in _followed(broker_id, old.image):
            now = new.image.partition(tp)
            if now is not None and tp not in stops:
                stops[tp] = StopReplicaPartitionState(
                    partition_index=tp.partition, leader_epoch=now.leader_epoch
                )
    return stops


def _followed(broker: int, image: MetadataImage) -> Iterator[TopicPartition]:
    """What a broker holds beside others that can hold it without."""
    for topic in image.topics.values():
        for number, state in enumerate(topic.partitions):
            if broker in state.replicas and len(state.replicas) > 1 and state.leader != broker:
                yield TopicPartition(topic.name, number)


def _by_topic(
    stops: Mapping[TopicPartition, StopReplicaPartitionState],
) -> list[StopReplicaTopicState]:
    grouped: dict[str, list[StopReplicaPartitionState]] = {}
    for tp, state in stops.items():
        grouped.setdefault(tp.topic, []).append(state)
    return [
        StopReplicaTopicState(topic_name=name, partition_states=states)
        for name, states in grouped.items()
    ]
