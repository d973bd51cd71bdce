"""DescribeTopicPartitions: topics and partitions page by page, in the order of their names.

A client of a large cluster asks again from the cursor that the last answer ended with (KIP-966).
Apache brokers serve this only in KRaft mode; the answer is the same.
"""

from asyncio import Future

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import Endpoint, MetadataImage, TopicImage
from barnabas_broker.cluster.views import live_endpoints, view_partition
from barnabas_broker.controller.topics import is_internal, name_fault
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.first_metadata import after_first_metadata
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings import broker as keys


def handle(
    request: DescribeTopicPartitionsRequest, call: RequestContext
) -> Work[DescribeTopicPartitionsResponse] | Future[Work[DescribeTopicPartitionsResponse]]:
    """Answer with one page; a request without topics means all topics."""
    waiting = after_first_metadata(call, lambda: _answer(request, call))
    return waiting if waiting is not None else _answer(request, call)


def _answer(
    request: DescribeTopicPartitionsRequest, call: RequestContext
) -> Work[DescribeTopicPartitionsResponse]:
    asked = {topic.name for topic in request.topics}
    if _bad_cursor(request.cursor, asked):
        # A whole-request error, which this response can only say topic by topic.
        names = asked or {request.cursor.topic_name if request.cursor else ""}
        return DescribeTopicPartitionsResponse(
            topics=[_refused(ErrorCode.INVALID_REQUEST, name) for name in sorted(names)]
        )
    first = request.cursor.topic_name if request.cursor is not None else ""
    image = call.broker.image  # One for the whole answer, however many time slices it takes.
    names = {name for name in asked or image.topics if name >= first}
    visible: list[str] = []
    for name in sorted(names):
        if call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            visible.append(name)
        yield
    response = yield from _page(request, visible, call, image)
    for topic in response.topics:
        topic.topic_authorized_operations = call.allowed_operations(
            ResourceType.TOPIC, topic.name or ""
        )
        yield
    if asked:
        response.topics += [
            _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
            for name in sorted(names.difference(visible))
        ]
    return response


def _bad_cursor(cursor: Cursor | None, asked: set[str]) -> bool:
    if cursor is None:
        return False
    return cursor.partition_index < 0 or (bool(asked) and cursor.topic_name not in asked)


def _page(
    request: DescribeTopicPartitionsRequest,
    names: list[str],
    call: RequestContext,
    image: MetadataImage,
) -> Work[DescribeTopicPartitionsResponse]:
    endpoints = live_endpoints(image, call.listener)
    limit = call.broker.settings[keys.MAX_REQUEST_PARTITION_SIZE_LIMIT]
    remaining = max(1, min(limit, request.response_partition_limit))
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if remaining == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        yield
        topic = image.topic(name)
        if topic is None:
            response.topics.append(_refused(_why_unknown(name), name))
            continue
        at_cursor = request.cursor is not None and request.cursor.topic_name == name
        start = request.cursor.partition_index if request.cursor and at_cursor else 0
        end = min(len(topic.partitions), start + remaining)
        try:
            seen = call.broker.replicas.as_served(topic)
            response.topics.append(_topic(seen, range(start, end), image, endpoints))
        except Exception as error:
            code = refusal(error, "DescribeTopicPartitions", name).code
            response.topics.append(_refused(code, name))
            continue
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        remaining -= max(0, end - start)
    return response


def _why_unknown(name: str) -> ErrorCode:
    if name_fault(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _refused(code: ErrorCode, name: str) -> DescribeTopicPartitionsResponseTopic:
    # As Kafka: a topic that a client may not describe is never called internal.
    hidden = code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, is_internal=not hidden and is_internal(name)
    )


def _topic(
    topic: TopicImage, numbers: range, image: MetadataImage, endpoints: dict[int, Endpoint]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(topic, number, image, endpoints) for number in numbers],
    )


def _partition(
    topic: TopicImage, number: int, image: MetadataImage, endpoints: dict[int, Endpoint]
) -> DescribeTopicPartitionsResponsePartition:
    state = topic.partitions[number]
    view = view_partition(state, image, endpoints)
    return DescribeTopicPartitionsResponsePartition(
        error_code=view.error,
        partition_index=number,
        leader_id=view.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        # ZooKeeper-mode controllers keep no list of replicas that could still become leader.
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=view.offline,
    )


HANDLER = Handler(ApiKey.DESCRIBE_TOPIC_PARTITIONS, VersionRange(0, 0), handle, large=True)
