"""OffsetForLeaderEpoch: where a leader epoch ended, so that clients detect truncation (KIP-320)."""

from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(
    request: OffsetForLeaderEpochRequest, call: RequestContext
) -> Work[OffsetForLeaderEpochResponse]:
    """For each partition: the largest epoch not above the one asked about, and where it ended.

    Consumers may ask about what they may describe (KIP-320), brokers about everything.
    """
    broker = call.allowed_on_cluster(AclOperation.CLUSTER_ACTION, audited=False)
    results = []
    for topic in request.topics:
        ends = yield from each(topic.partitions, partial(_answer, call, topic.topic, broker))
        results.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=ends))
    return OffsetForLeaderEpochResponse(topics=results)


def _answer(
    call: RequestContext, topic: str, broker: bool, entry: OffsetForLeaderPartition
) -> EpochEndOffset:
    answer = EpochEndOffset(partition=entry.partition)
    try:
        if not (broker or call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = call.broker.replicas.leader(
            TopicPartition(topic, entry.partition), entry.current_leader_epoch
        )
        answer.leader_epoch, answer.end_offset = partition.log.end_offset_for_epoch(
            entry.leader_epoch
        )
    except Exception as error:
        answer.error_code = refusal(error, "OffsetForLeaderEpoch", (topic, entry)).code
    return answer


HANDLER = Handler(ApiKey.OFFSET_FOR_LEADER_EPOCH, VersionRange(0, 4), handle, large=True)
