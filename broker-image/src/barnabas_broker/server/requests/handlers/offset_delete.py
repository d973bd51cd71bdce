"""OffsetDelete: forget single committed offsets of a group (KIP-496)."""

from asyncio import Future

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.coordinator.group.commits import deletions, write_error
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(
    request: OffsetDeleteRequest, call: RequestContext
) -> Work[OffsetDeleteResponse | Future[OffsetDeleteResponse]]:
    """Delete the offsets of partitions that the group does not read at the moment."""
    if not call.allowed(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    faults = yield from _faults(request, call)
    known = [partition for partition, fault in faults.items() if fault is None]

    def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        return shard.delete_offsets(request.group_id, known, waiter, now_ms)

    def answer(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        if response.error_code:
            return response
        for topic_answer in response.topics:
            for each in topic_answer.partitions:
                partition = TopicPartition(topic_answer.name, each.partition_index)
                faults[partition] = ErrorCode(each.error_code)
        return deletions(faults)

    try:
        found: OffsetDeleteResponse | Future[OffsetDeleteResponse] = call.broker.groups.ask(
            request.group_id, step
        )
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
    return then(
        found, answer, lambda error: OffsetDeleteResponse(error_code=write_error(error.code))
    )


def _faults(
    request: OffsetDeleteRequest, call: RequestContext
) -> Work[dict[TopicPartition, ErrorCode | None]]:
    faults: dict[TopicPartition, ErrorCode | None] = {}
    for topic in request.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            try:
                faults[partition] = _fault(partition, call)
            except Exception as error:  # The boundary between one partition and the others.
                faults[partition] = refusal(error, "OffsetDelete", partition).code
            yield
    return faults


def _fault(partition: TopicPartition, call: RequestContext) -> ErrorCode | None:
    if not call.allowed(AclOperation.READ, ResourceType.TOPIC, partition.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if call.broker.image.partition(partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


HANDLER = Handler(ApiKey.OFFSET_DELETE, VersionRange(0, 0), handle, large=True)
