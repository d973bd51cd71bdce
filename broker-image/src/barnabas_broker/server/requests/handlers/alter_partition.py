"""AlterPartition: a leader asks the controller to change its ISR (KIP-497)."""

from asyncio import Future
from collections.abc import Iterator

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.isr_changes import (
    TOPIC_IDS_SINCE,
    InSyncChange,
    IsrAnswer,
    IsrRequest,
)
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler, among_others
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

# From here on in-sync replicas come with the epochs of their brokers.
BROKER_EPOCHS_SINCE = 3

Altered = tuple[ErrorCode, list[IsrAnswer]]


def handle(
    request: AlterPartitionRequest, call: RequestContext
) -> Work[AlterPartitionResponse | Future[Work[AlterPartitionResponse]]]:
    """Answer with the state of each partition as it is now, or why it is not changed."""
    if not call.allowed_on_cluster(AclOperation.CLUSTER_ACTION):
        return AlterPartitionResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    changes = []
    for change in _changes(request, call.version):
        changes.append(change)
        yield
    asked = IsrRequest(request.broker_id, request.broker_epoch, changes, call.version)

    def alter(controller: Controller) -> Altered:
        try:
            return ErrorCode.NONE, controller.alter_partitions(asked, now_ms=call.now_ms)
        except KafkaError as error:
            return error.code, []

    return call.broker.controller.ask(alter, lambda altered: _answer(request, altered))


def _changes(request: AlterPartitionRequest, version: int) -> Iterator[InSyncChange]:
    for topic in request.topics:
        for each in topic.partitions:
            if version >= BROKER_EPOCHS_SINCE:
                isr = tuple(replica.broker_id for replica in each.new_isr_with_epochs)
            else:
                isr = tuple(each.new_isr)
            epochs = {it.broker_id: it.broker_epoch for it in each.new_isr_with_epochs}
            yield InSyncChange(
                topic=topic.topic_id if version >= TOPIC_IDS_SINCE else topic.topic_name,
                partition=each.partition_index,
                leader_epoch=each.leader_epoch,
                partition_epoch=each.partition_epoch,
                isr=isr,
                recovering=each.leader_recovery_state != 0,
                broker_epochs={broker: epoch for broker, epoch in epochs.items() if epoch >= 0},
            )


def _answer(request: AlterPartitionRequest, altered: Altered) -> Work[AlterPartitionResponse]:
    code, answers = altered
    if code is not ErrorCode.NONE:
        return AlterPartitionResponse(error_code=code)
    remaining = iter(answers)
    response = AlterPartitionResponse()
    for topic in request.topics:
        answered = AlterPartitionResponseTopicData(
            topic_name=topic.topic_name, topic_id=topic.topic_id
        )
        response.topics.append(answered)
        for each in topic.partitions:
            answered.partitions.append(_partition(each.partition_index, next(remaining)))
            yield
    return response


def _partition(number: int, answer: IsrAnswer) -> AlterPartitionResponsePartitionData:
    state = answer.state
    if state is None:
        return AlterPartitionResponsePartitionData(partition_index=number, error_code=answer.error)
    return AlterPartitionResponsePartitionData(
        partition_index=number,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        leader_recovery_state=int(state.recovering),
        partition_epoch=state.partition_epoch,
    )


HANDLER = Handler(
    ApiKey.ALTER_PARTITION, VersionRange(0, 3), handle, large=True, offered=among_others
)
