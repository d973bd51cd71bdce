"""Moves of partitions to other replicas: begun, ended, and completed as replicas come into sync.

Kafka's `processApiPartitionReassignment`, `processZkPartitionReassignment` and
`processPartitionReassignmentIsrChange` (KIP-455). They are asked for in the protocol, or by tools
up to 2.8 in a znode of /admin, which stays until they are done. An assignment and the state that
goes with it are written in one transaction.
"""

import logging
from collections.abc import Collection, Mapping, Sequence

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.controller.commands import ReadAdminRequest, Transition, Write
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.reassignment import (
    advance,
    assignment_of,
    in_progress,
    origin,
    reassigned,
    target,
)
from barnabas_broker.controller.requests import Answers, Wanted
from barnabas_broker.controller.state_changes import Refused
from barnabas_broker.controller.transitions.partition_changes import change, refresh
from barnabas_broker.zk.operations import Delete, SetData
from barnabas_broker.zk.znodes import (
    LeaderAndIsr,
    MalformedZnodeError,
    ReassignPartitionsZnode,
    ReplicaAssignment,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


def reassign(
    context: ControllerContext, wanted: Wanted, *, factor_may_change: bool = True
) -> Transition[Answers]:
    """Begin moves, or end them; why not, for each partition where it is not done."""
    answers: Answers = {}
    planned: dict[TopicPartition, ReplicaAssignment] = {}
    for tp, replicas in wanted.items():
        try:
            planned[tp] = _planned(context, tp, replicas, factor_may_change)
            answers[tp] = None
        except Exception as error:  # The boundary between one partition and the others.
            answers[tp] = refusal(error, "Reassignment", tp)
    try:
        answers |= yield from _advance(context, planned)
    except KafkaError as error:
        answers |= dict.fromkeys(planned, error)
    return answers


def _planned(
    context: ControllerContext,
    tp: TopicPartition,
    replicas: Sequence[int] | None,
    factor_may_change: bool,
) -> ReplicaAssignment:
    state = context.image.partition(tp)
    if state is None or state.leader_epoch < 0:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if replicas is None:
        if not in_progress(state):
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        return reassigned(state, origin(state))
    if not replicas:
        raise _bad("Empty replica list specified in partition reassignment.")
    if len(set(replicas)) != len(replicas):
        raise _bad(
            f"Duplicate replica ids in partition reassignment replica list: {list(replicas)}"
        )
    if min(replicas) < 0:
        raise _bad(f"Invalid broker id in replica list: {list(replicas)}")
    planned = reassigned(state, replicas)
    if not set(planned.adding) <= context.eligible:
        raise _bad(
            "Replica assignment has brokers that are not alive. Replica list: "
            f"{list(planned.adding)}, live broker list: {sorted(context.eligible)}"
        )
    if not factor_may_change and len(replicas) != len(origin(state)):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor of {tp} is {len(origin(state))}, and must not change.",
        )
    return planned


def complete_moves(
    context: ControllerContext, partitions: Collection[TopicPartition] | None
) -> Transition[None]:
    """End the moves, of those given or of all, whose new replicas are all in sync."""
    among = None if partitions is None else frozenset(partitions)
    ready = {
        tp: assignment_of(state)
        for tp, state in context.moving().items()
        if (among is None or tp in among) and set(target(assignment_of(state))) <= set(state.isr)
    }
    yield from _advance(context, ready)
    if ready:
        yield from _tidy(context)


def _advance(
    context: ControllerContext, assignments: Mapping[TopicPartition, ReplicaAssignment]
) -> Transition[Refused]:
    changes: dict[TopicPartition, LeaderAndIsr] = {}
    placed: dict[TopicPartition, ReplicaAssignment] = {}
    yield from refresh(context, assignments)
    for tp, assignment in assignments.items():
        state = context.image.partition(tp)
        if state is not None:
            changes[tp], placed[tp] = advance(
                state,
                assignment,
                live=context.electable_for(tp),
                controller_epoch=context.epoch,
            )
    if not changes:
        return {}
    refused = yield from change(context, changes, placed=placed)
    for tp, assignment in placed.items():
        if tp in refused:
            continue
        done = not (assignment.adding or assignment.removing)
        event = "Completed" if done else "Started"
        _log.info("%s reassignment: partition=%s replicas=%s", event, tp, target(assignment))
    return refused


def moves_asked_for(context: ControllerContext) -> Transition[None]:
    """Begin the moves that tools up to 2.8 ask for in a znode."""
    path = ReassignPartitionsZnode.PATH
    found: tuple[bytes | None] | None = yield ReadAdminRequest(path)
    if found is None:
        return
    try:
        wanted = ReassignPartitionsZnode.decode(found[0])
    except MalformedZnodeError as error:
        _log.error("Malformed znode: %s; deleting it", error)
        yield Write([Delete(path)])
        return
    new = {
        tp: replicas
        for tp, replicas in wanted.items()
        if not _is_moving_to(context.image.partition(tp), replicas)
    }
    answers = yield from reassign(context, new)
    for tp, failure in answers.items():
        if failure is not None and failure.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            raise failure  # The outcome is unknown: the znode stays until it is tried again.
        if failure is not None:
            _log.warning("Reassignment rejected: partition=%s %s", tp, failure)
    yield from _tidy(context)


def _tidy(context: ControllerContext) -> Transition[None]:
    """Leave in /admin/reassign_partitions what is under way, or take it away."""
    path = ReassignPartitionsZnode.PATH
    found: tuple[bytes | None] | None = yield ReadAdminRequest(path, watch=False)
    if found is None:
        return
    try:
        wanted = ReassignPartitionsZnode.decode(found[0])
    except MalformedZnodeError:
        return
    moving = context.moving()
    left = {tp: replicas for tp, replicas in wanted.items() if tp in moving}
    if not left:
        yield Write([Delete(path)])
    elif len(left) < len(wanted):
        yield Write([SetData(path, ReassignPartitionsZnode.encode(left))])


def _is_moving_to(state: PartitionState | None, replicas: Sequence[int]) -> bool:
    if state is None:
        return False
    return in_progress(state) and target(assignment_of(state)) == tuple(replicas)


def _bad(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
