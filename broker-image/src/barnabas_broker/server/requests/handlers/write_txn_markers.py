"""WriteTxnMarkers: write the ends of transactions into partitions (KIP-98).

Sent by transaction coordinators on other brokers, and by tools that abort a hanging transaction
(KIP-664).
"""

from asyncio import Future, get_running_loop
from collections.abc import Callable

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.markers import Marker
from barnabas_broker.replica.delayed_produce import ALL_IN_SYNC, DelayedProduce, Uncounted
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange
from barnabas_kafka.settings import broker as keys

Answer = WriteTxnMarkersResponse | Future[WriteTxnMarkersResponse]


def handle(request: WriteTxnMarkersRequest, call: RequestContext) -> Work[Answer]:
    """Append every marker, and answer when all are committed."""
    allowed = call.allowed_on_cluster(AclOperation.ALTER, audited=False) or call.allowed_on_cluster(
        AclOperation.CLUSTER_ACTION
    )
    uncounted: list[Uncounted] = []
    response = WriteTxnMarkersResponse()
    for marker in request.markers:
        response.markers.append((yield from _written(marker, call, uncounted, allowed=allowed)))
    if not uncounted:
        return response
    return DelayedProduce(
        get_running_loop(),
        uncounted,
        acks=ALL_IN_SYNC,
        timeout_ms=call.broker.settings[keys.REQUEST_TIMEOUT_MS],
        response=response,
    ).future


def _written(
    asked: WritableTxnMarker, call: RequestContext, uncounted: list[Uncounted], *, allowed: bool
) -> Work[WritableTxnMarkerResult]:
    yield
    marker = Marker(
        Producer(asked.producer_id, asked.producer_epoch),
        asked.transaction_result,
        asked.coordinator_epoch,
        asked.transaction_version,
    )
    result = WritableTxnMarkerResult(producer_id=asked.producer_id)
    for topic in asked.topics:
        of_topic = WritableTxnMarkerTopicResult(name=topic.name)
        result.topics.append(of_topic)
        yield
        for index in topic.partition_indexes:
            yield
            answer = WritableTxnMarkerPartitionResult(partition_index=index)
            of_topic.partitions.append(answer)
            if not allowed:
                answer.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                continue
            waiting = call.broker.markers.write(
                TopicPartition(topic.name, index), marker, _teller(answer)
            )
            if waiting is not None:
                uncounted.append(waiting)
    return result


def _teller(
    answer: WritableTxnMarkerPartitionResult,
) -> Callable[[TopicPartition, ErrorCode], None]:
    def complete(_tp: TopicPartition, code: ErrorCode) -> None:
        answer.error_code = code

    return complete


HANDLER = Handler(ApiKey.WRITE_TXN_MARKERS, VersionRange(0, 2), handle, large=True)
