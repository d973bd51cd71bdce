"""Changes of the ISR that leaders ask for (AlterPartition, KIP-497).

Kafka's `KafkaController.processAlterPartition`. What is granted is decided in `isr_changes`; here
it is written, and what the store refuses is judged once more by what the store has.
"""

from barnabas_broker.controller import isr_changes
from barnabas_broker.controller.commands import Transition
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.isr_changes import IsrAnswer, IsrRequest
from barnabas_broker.controller.state_changes import Refused
from barnabas_broker.controller.transitions.partition_changes import change, refresh
from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode, KafkaError


def alter_partitions(
    context: ControllerContext, request: IsrRequest
) -> Transition[list[IsrAnswer]]:
    """Change ISRs, as leaders request; one response for each change, in order.

    A write that the store refuses, or whose answer is lost, says nothing about the changes: by
    what the store has now they are judged again, so that a change which was made is granted,
    and tried once more. Raises KafkaError STALE_BROKER_EPOCH for a broker that is not
    registered so, NOT_CONTROLLER, and UNKNOWN_SERVER_ERROR where it is still not known whether
    changes were made. Leaders retry after that error. After INVALID_UPDATE_VERSION, Apache's
    leaders do not: they wait for a LeaderAndIsr request, which may never be sent.
    """
    registered = context.image.brokers.get(request.broker_id)
    if registered is None or registered.epoch != request.broker_epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    named = isr_changes.partitions_of(request, context.image)
    if context.stale:
        yield from refresh(context, named)
    try:
        answers = yield from _alter(context, request)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            raise
    else:
        if all(each.error is not ErrorCode.UNKNOWN_SERVER_ERROR for each in answers):
            return answers
    yield from refresh(context, named)
    return (yield from _alter(context, request))


def _alter(context: ControllerContext, request: IsrRequest) -> Transition[list[IsrAnswer]]:
    """Judge the changes by the image, and make those that are to be made.

    A change that the store refuses is answered by UNKNOWN_SERVER_ERROR, the others as they are.
    """
    judged = isr_changes.judge_all(request, context.image, context.eligible_for)
    changes = {
        each.tp: isr_changes.granted(
            each.change, broker_id=request.broker_id, controller_epoch=context.epoch
        )
        for each in judged
        if each.tp is not None and each.error is None
    }
    refused: Refused = {}
    if changes:
        refused = yield from change(context, changes)
    answers = []
    for each in judged:
        outcome = each.error or ErrorCode.NONE
        if each.tp in refused and each.error is None:
            outcome = ErrorCode.UNKNOWN_SERVER_ERROR
        state = None if each.tp is None else context.image.partition(each.tp)
        answers.append(IsrAnswer(outcome, state if outcome is ErrorCode.NONE else None))
    assert len(answers) == len(request.changes), violated("every change is answered")
    return answers
