"""AddOffsetsToTxn: make a group's offsets part of a transaction (KIP-98).

What becomes part of it is the partition of `__consumer_offsets` that the group's offsets are in.
"""

from asyncio import Future, ensure_future

from barnabas_broker.coordinator.group.group_coordinator import GROUPS_TOPIC
from barnabas_broker.coordinator.hashing import partition_of
from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.shard import write_error
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.internal_topics import with_internal_topic
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

FENCED_SINCE = 2
"""Older clients know INVALID_PRODUCER_EPOCH for what is PRODUCER_FENCED now."""


def handle(
    request: AddOffsetsToTxnRequest, call: RequestContext
) -> AddOffsetsToTxnResponse | Future[AddOffsetsToTxnResponse]:
    """Add the partition, once it is clear that the caller may."""
    transactional_id = request.transactional_id
    if not call.allowed(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return _answer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, call)
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return _answer(ErrorCode.GROUP_AUTHORIZATION_FAILED, call)
    if not transactional_id:
        return _answer(ErrorCode.INVALID_REQUEST, call)
    return ensure_future(_added(request, call))


async def _added(request: AddOffsetsToTxnRequest, call: RequestContext) -> AddOffsetsToTxnResponse:
    creating = with_internal_topic(GROUPS_TOPIC, call)
    if isinstance(creating, Future):
        await creating
    topic = call.broker.image.topic(GROUPS_TOPIC)
    if topic is None:
        return _answer(ErrorCode.COORDINATOR_NOT_AVAILABLE, call)
    index = partition_of(request.group_id, len(topic.partitions))
    producer = Producer(request.producer_id, request.producer_epoch)
    try:
        added = call.broker.transactions.add_partitions(
            request.transactional_id, producer, [TopicPartition(GROUPS_TOPIC, index)]
        )
        return _answer(await added if isinstance(added, Future) else added, call)
    except KafkaError as error:
        return _answer(write_error(error.code), call)


def _answer(code: ErrorCode, call: RequestContext) -> AddOffsetsToTxnResponse:
    if code is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=code)


HANDLER = Handler(ApiKey.ADD_OFFSETS_TO_TXN, VersionRange(0, 4), handle)
