"""DeleteRecords: move the start of a log, so that what lies before it is gone (KIP-107)."""

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_OFFSET, TopicPartition
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    """Delete up to the given offset of each partition; -1 stands for the high watermark."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(call, TopicPartition(topic.name, entry.partition_index), entry.offset)
                    for entry in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete(call: Call, tp: TopicPartition, offset: int) -> DeleteRecordsPartitionResult:
    answer = DeleteRecordsPartitionResult(partition_index=tp.partition, low_watermark=NO_OFFSET)
    try:
        if not call.allowed(AclOperation.DELETE, ResourceType.TOPIC, tp.topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        answer.low_watermark = call.broker.replicas.leader(tp).delete_records_before(offset)
    except KafkaError as error:
        answer.error_code = error.code
    return answer


HANDLER = Handler(ApiKey.DELETE_RECORDS, VersionRange(0, 2), handle)
