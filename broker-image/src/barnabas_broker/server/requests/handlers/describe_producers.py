"""DescribeProducers: the producers of a partition and their transactions (KIP-664)."""

from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.topics import validate_name
from barnabas_broker.log.producer_state import ProducerEntry
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(
    request: DescribeProducersRequest, call: RequestContext
) -> Work[DescribeProducersResponse]:
    """Answer once for each partition with a replica here, leader or follower."""
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    topics = []
    for name, indexes in asked.items():
        partitions = yield from each(indexes, partial(_partition, call, name))
        topics.append(TopicResponse(name=name, partitions=partitions))
    return DescribeProducersResponse(topics=topics)


def _partition(call: RequestContext, topic: str, index: int) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index)
    try:
        validate_name(topic)
        if not call.allowed(AclOperation.READ, ResourceType.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        replica = call.broker.replicas.readable(TopicPartition(topic, index))
        producers = replica.log.producers.producers
    except Exception as error:
        refused = refusal(error, "DescribeProducers", (topic, index))
        answer.error_code, answer.error_message = refused.code, refused.message
        return answer
    answer.active_producers = [_producer(entry) for entry in producers.values()]
    return answer


def _producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.txn_first_offset,
    )


HANDLER = Handler(ApiKey.DESCRIBE_PRODUCERS, VersionRange(0, 0), handle, large=True)
