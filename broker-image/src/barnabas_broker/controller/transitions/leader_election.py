"""Elections that a request asks for, and those that keep brokers in balance.

Kafka's `processReplicaLeaderElection` and `processAutoPreferredReplicaLeaderElection`. They are
asked for in the protocol, or by tools up to 2.8 in a znode of /admin, which stays until it is done.
"""

import logging
from collections.abc import Sequence

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.commands import ReadAdminRequest, Transition, Write
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.elections import elect_offline, elect_preferred
from barnabas_broker.controller.isr_changes import stored
from barnabas_broker.controller.requests import Answers, ElectionType
from barnabas_broker.controller.transitions.partition_changes import change, refresh
from barnabas_broker.zk.operations import Delete
from barnabas_broker.zk.znodes import (
    LeaderAndIsr,
    MalformedZnodeError,
    PreferredElectionZnode,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


def elect(
    context: ControllerContext, kind: ElectionType, partitions: Sequence[TopicPartition] | None
) -> Transition[Answers]:
    """Elect leaders of the partitions, or of all; why not, for each where it is not done.

    Of all, only those are answered for that an election would change.
    """
    wanted = context.partitions() if partitions is None else list(partitions)
    answers: Answers = {}
    changes: dict[TopicPartition, LeaderAndIsr] = {}
    try:
        yield from refresh(context, wanted)
    except KafkaError as error:
        return dict.fromkeys(wanted, error)
    for tp in wanted:
        elected = _outcome(context, kind, tp)
        if isinstance(elected, LeaderAndIsr):
            changes[tp] = elected
            answers[tp] = None
        elif partitions is not None or elected.code is not ErrorCode.ELECTION_NOT_NEEDED:
            answers[tp] = elected
    if changes:
        try:
            answers |= yield from change(context, changes)
        except KafkaError as error:
            answers |= dict.fromkeys(changes, error)
    return answers


def _outcome(
    context: ControllerContext, kind: ElectionType, tp: TopicPartition
) -> LeaderAndIsr | KafkaError:
    try:
        return _elected(context, kind, tp)
    except Exception as error:  # The boundary between one partition and the others.
        return refusal(error, "Leader election", tp)


def _elected(
    context: ControllerContext, kind: ElectionType, tp: TopicPartition
) -> LeaderAndIsr | KafkaError:
    if tp.topic in context.deleting:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
    state = context.image.partition(tp)
    if state is None or state.leader_epoch < 0:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if kind is ElectionType.PREFERRED:
        if state.leader == state.replicas[0]:
            return KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
        elected = elect_preferred(
            state.replicas,
            stored(state),
            live=context.electable_for(tp),
            controller_epoch=context.epoch,
        )
        missing = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        if state.leader in context.image.brokers:
            return KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
        elected = elect_offline(
            state.replicas,
            stored(state),
            live=context.eligible_for(tp),
            unclean=True,
            controller_epoch=context.epoch,
        )
        missing = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    if elected is None:
        return KafkaError(missing, f"Failed to elect leader for partition {tp}")
    return elected


def balance(context: ControllerContext, imbalance_percentage: int) -> Transition[int]:
    """Hand leadership back to brokers that lead too little of what they should; how often.

    A broker leads too little when more of the partitions that prefer it than that share are
    led by others.
    """
    by_broker: dict[int, list[TopicPartition]] = {}
    for tp in context.partitions():
        state = context.image.partition(tp)
        if state is not None and state.leader_epoch >= 0:
            by_broker.setdefault(state.replicas[0], []).append(tp)
    changes: dict[TopicPartition, LeaderAndIsr] = {}
    for preferring in by_broker.values():
        elected = {tp: _outcome(context, ElectionType.PREFERRED, tp) for tp in preferring}
        elsewhere = [
            tp
            for tp, outcome in elected.items()
            if isinstance(outcome, LeaderAndIsr)
            or outcome.code is not ErrorCode.ELECTION_NOT_NEEDED
        ]
        if len(elsewhere) * 100 > imbalance_percentage * len(preferring):
            changes |= {
                tp: outcome for tp, outcome in elected.items() if isinstance(outcome, LeaderAndIsr)
            }
    if not changes:
        return 0
    refused = yield from change(context, changes)
    done = len(changes) - len(refused)
    _log.info("Preferred leader election completed: partitions=%d", done)
    return done


def elections_asked_for(context: ControllerContext) -> Transition[None]:
    """Hold the elections that tools up to 2.8 ask for in a znode."""
    path = PreferredElectionZnode.PATH
    found: tuple[bytes | None] | None = yield ReadAdminRequest(path)
    if found is None:
        return
    try:
        wanted: Sequence[TopicPartition] = PreferredElectionZnode.decode(found[0])
    except MalformedZnodeError as error:
        _log.error("Malformed znode: %s; deleting it", error)
        wanted = ()
    answers = yield from elect(context, ElectionType.PREFERRED, wanted)
    for tp, failure in answers.items():
        if failure is not None and failure.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            raise failure  # The outcome is unknown: the znode stays until it is tried again.
        if failure is not None:
            _log.info("Preferred leader not elected: partition=%s %s", tp, failure)
    yield Write([Delete(path)])
