"""AddPartitionsToTxn: make partitions part of a transaction before they are written to (KIP-98).

All or none of a transaction's partitions are added: where one cannot be, the others are answered
OPERATION_NOT_ATTEMPTED. Clients send versions up to 3, about one transaction. From version 4 on
brokers ask about several at once, to add partitions or only to verify that they were (KIP-890).
"""

from asyncio import Future
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.topics import INTERNAL_TOPICS
from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.shard import write_error
from barnabas_broker.coordinator.transaction.transaction import EPOCH_PER_TRANSACTION
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.process.deferred_responses import then, together
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

FENCED_SINCE = 2
"""Older clients know INVALID_PRODUCER_EPOCH for what is PRODUCER_FENCED now."""
SEVERAL_SINCE = 4
ABORTABLE_SINCE = 5
"""From this version on a client outside the transaction learns that it can be aborted."""

Answer = AddPartitionsToTxnResponse


class _Asked(NamedTuple):
    """What is asked about one transaction."""

    transactional_id: str
    producer: Producer
    topics: Sequence[AddPartitionsToTxnTopic]
    verify_only: bool = False


class _Verdict(NamedTuple):
    """What is answered for the partitions of a transaction, and for those that differ."""

    code: ErrorCode
    others: Mapping[TopicPartition, ErrorCode] = MappingProxyType({})

    def of(self, partition: TopicPartition) -> ErrorCode:
        return self.others.get(partition, self.code)


def handle(
    request: AddPartitionsToTxnRequest, call: RequestContext
) -> Work[Answer | Work[Answer] | Future[Work[Answer]]]:
    """Answer for each partition of each transaction."""
    if call.version >= SEVERAL_SINCE and not call.allowed_on_cluster(AclOperation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    several = _asked(request, call)
    verdicts: list[_Verdict | Future[_Verdict]] = []
    for asked in several:
        verdict = yield from _verdict(asked, call)
        verdicts.append(verdict)
    return together(verdicts, lambda found: _response(several, found, call))


def _asked(request: AddPartitionsToTxnRequest, call: RequestContext) -> list[_Asked]:
    if call.version < SEVERAL_SINCE:
        return [
            _Asked(
                request.v3_and_below_transactional_id,
                Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
                request.v3_and_below_topics,
            )
        ]
    return [
        _Asked(
            each.transactional_id,
            Producer(each.producer_id, each.producer_epoch),
            each.topics,
            each.verify_only,
        )
        for each in request.transactions
    ]


def _verdict(asked: _Asked, call: RequestContext) -> Work[_Verdict | Future[_Verdict]]:
    yield
    if call.version < SEVERAL_SINCE and not call.allowed(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, asked.transactional_id
    ):
        return _Verdict(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not asked.transactional_id:
        return _Verdict(ErrorCode.INVALID_REQUEST)
    partitions, faults = yield from _looked_up(asked, call)
    if faults:
        return _Verdict(ErrorCode.OPERATION_NOT_ATTEMPTED, faults)
    transactions = call.broker.transactions
    try:
        if asked.verify_only:
            verified = transactions.verify(asked.transactional_id, asked.producer, partitions)
            return _Verdict(ErrorCode.NONE, verified)
        # Brokers add for producers that do not ask themselves.
        protocol = EPOCH_PER_TRANSACTION if call.version >= SEVERAL_SINCE else 0
        added = transactions.add_partitions(
            asked.transactional_id, asked.producer, partitions, protocol=protocol
        )
    except Exception as error:
        return _Verdict(refusal(error, "AddPartitionsToTxn", asked.transactional_id).code)
    return then(added, _Verdict, lambda error: _Verdict(write_error(error.code)))


def _looked_up(
    asked: _Asked, call: RequestContext
) -> Work[tuple[Sequence[TopicPartition], Mapping[TopicPartition, ErrorCode]]]:
    """The partitions, each once, and those that no transaction of the caller can have."""
    partitions: dict[TopicPartition, None] = {}
    faults = {}
    for topic in asked.topics:
        # Brokers asked for their clients, and have checked what these may do.
        allowed = call.version >= SEVERAL_SINCE or (
            topic.name not in INTERNAL_TOPICS
            and call.allowed(AclOperation.WRITE, ResourceType.TOPIC, topic.name)
        )
        yield
        for index in topic.partitions:
            partition = TopicPartition(topic.name, index)
            partitions[partition] = None
            if not allowed:
                faults[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif call.broker.image.partition(partition) is None:
                faults[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            yield
    return list(partitions), faults


def _response(
    several: Sequence[_Asked], verdicts: Sequence[_Verdict], call: RequestContext
) -> Work[AddPartitionsToTxnResponse]:
    results = []
    for asked, verdict in zip(several, verdicts, strict=True):
        topics = yield from _topics(asked, verdict, call)
        results.append(
            AddPartitionsToTxnResult(transactional_id=asked.transactional_id, topic_results=topics)
        )
    if call.version < SEVERAL_SINCE:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _topics(
    asked: _Asked, verdict: _Verdict, call: RequestContext
) -> Work[list[AddPartitionsToTxnTopicResult]]:
    topics = []
    for topic in asked.topics:
        of_topic = AddPartitionsToTxnTopicResult(name=topic.name)
        topics.append(of_topic)
        yield
        for index in topic.partitions:
            code = verdict.of(TopicPartition(topic.name, index))
            of_topic.results_by_partition.append(
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=_for_version(code, asked, call),
                )
            )
            yield
    return topics


def _for_version(code: ErrorCode, asked: _Asked, call: RequestContext) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if (
        code is ErrorCode.INVALID_TXN_STATE
        and asked.verify_only
        and call.version >= ABORTABLE_SINCE
    ):
        return ErrorCode.TRANSACTION_ABORTABLE
    return code


HANDLER = Handler(ApiKey.ADD_PARTITIONS_TO_TXN, VersionRange(0, 5), handle, large=True)
