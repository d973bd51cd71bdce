"""DeleteRecords: move the start of a log, so that what lies before it is gone (KIP-107).

The answer waits until it is gone on every live replica (`replica.delayed_delete_records`).
"""

from asyncio import Future, get_running_loop
from functools import partial
from typing import Any

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.topics import is_internal
from barnabas_broker.replica.delayed_delete_records import DelayedDeleteRecords, Undeleted
from barnabas_broker.replica.partition import Partition
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_OFFSET, TopicPartition
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(
    request: DeleteRecordsRequest, call: RequestContext
) -> Work[DeleteRecordsResponse | Future[Any]]:
    """Delete up to the given offset of each partition; -1 is the high watermark."""
    undeleted: list[Undeleted] = []
    response = DeleteRecordsResponse()
    for topic in request.topics:
        result = DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(result)
        for entry in topic.partitions:
            tp = TopicPartition(topic.name, entry.partition_index)
            result.partitions.append(_delete(call, tp, entry.offset, undeleted))
            yield
    if not undeleted:
        return response
    return DelayedDeleteRecords(
        get_running_loop(), undeleted, timeout_ms=request.timeout_ms, response=response
    ).future


def _delete(
    call: RequestContext, tp: TopicPartition, offset: int, undeleted: list[Undeleted]
) -> DeleteRecordsPartitionResult:
    """Delete here; what is not deleted everywhere yet is added to `undeleted`."""
    answer = DeleteRecordsPartitionResult(partition_index=tp.partition, low_watermark=NO_OFFSET)
    try:
        if not call.allowed(AclOperation.DELETE, ResourceType.TOPIC, tp.topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if is_internal(tp.topic) and call.broker.image.partition(tp) is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        led = call.broker.replicas.leader(tp)
        wanted = led.delete_records_before(offset)
    except Exception as error:
        answer.error_code = refusal(error, "DeleteRecords", tp).code
        return answer
    answer.low_watermark = led.low_watermark
    if answer.low_watermark < wanted:
        undeleted.append(Undeleted(led, wanted, partial(_complete, answer, led)))
    return answer


def _complete(answer: DeleteRecordsPartitionResult, led: Partition, code: ErrorCode) -> None:
    """On a timeout the response has the low watermark of the beginning, as Apache's has."""
    answer.error_code = code
    if code == ErrorCode.NONE:
        answer.low_watermark = led.low_watermark
    elif code != ErrorCode.REQUEST_TIMED_OUT:
        answer.low_watermark = NO_OFFSET


HANDLER = Handler(ApiKey.DELETE_RECORDS, VersionRange(0, 2), handle, large=True)
