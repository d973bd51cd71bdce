"""TxnOffsetCommit: commit a group's offsets as part of a transaction (KIP-98, KIP-447, KIP-890)."""

from asyncio import Future, ensure_future
from collections.abc import Callable
from copy import copy
from functools import partial

from barnabas_broker.coordinator.group.commits import (
    commit_write_error,
    refused_transactional_commit,
)
from barnabas_broker.coordinator.group.group_coordinator import GROUPS_TOPIC
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.coordinator.results import Producer
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests import offset_commits
from barnabas_broker.server.requests.add_partitions_to_txn_manager import (
    ASKED_AT_MOST,
    Unasked,
    join,
    verify,
    verify_joined,
)
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas_kafka.protocol.registry import ApiKey

LOADING_SINCE = 2
"""Older producers may not survive COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""

ABORTABLE_SINCE = 4
JOINS_SINCE = 5
"""From then on the group's partition joins the transaction by being committed to (KIP-890)."""

Answer = TxnOffsetCommitResponse | Future[TxnOffsetCommitResponse]


def handle(
    request: TxnOffsetCommitRequest, call: RequestContext
) -> Work[
    TxnOffsetCommitResponse | Work[TxnOffsetCommitResponse] | Future[Work[TxnOffsetCommitResponse]]
]:
    """Commit what the caller may and what exists; answers keep the order of the request."""
    code = _refusal(request, call)
    if code is not None:
        return refused_transactional_commit(request, code)
    codes = yield from offset_commits.faults(request.topics, call)
    asked, request = request.topics, copy(request)
    request.topics = yield from offset_commits.without(asked, codes, TxnOffsetCommitRequestTopic)

    def in_order() -> Work[TxnOffsetCommitResponse]:
        made = (TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition)
        topics = yield from offset_commits.in_order(asked, codes, *made)
        return TxnOffsetCommitResponse(topics=topics)

    def answer(committed: TxnOffsetCommitResponse) -> Work[TxnOffsetCommitResponse]:
        yield from offset_commits.note(committed.topics, codes)
        for partition, code in codes.items():
            codes[partition] = _for_version(code, call)
        return (yield from in_order())

    if not request.topics:
        return (yield from in_order())
    return then(
        _committed(request, call),
        answer,
        lambda error: answer(refused_transactional_commit(request, commit_write_error(error.code))),
    )


def _refusal(request: TxnOffsetCommitRequest, call: RequestContext) -> ErrorCode | None:
    transactional_id = request.transactional_id
    if not call.allowed(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None


def _committed(request: TxnOffsetCommitRequest, call: RequestContext) -> Answer:
    def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        return shard.commit_in_transaction(request, waiter, now_ms)

    if not request.group_id:
        # OffsetCommit knows a group without a name, for standalone consumers of long ago.
        return refused_transactional_commit(request, ErrorCode.INVALID_GROUP_ID)
    groups = call.broker.groups

    def commit() -> Answer:
        answer: Answer = groups.ask(request.group_id, step)
        return answer

    transactional_id = request.transactional_id
    try:
        index = groups.partition_of(request.group_id)
        if index is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        partition = call.broker.replicas.led(GROUPS_TOPIC, index)
        producer = Producer(request.producer_id, request.producer_epoch)
        if call.version < JOINS_SINCE:
            check = partial(
                verify,
                call,
                partition,
                transactional_id,
                producer,
                abortable=call.version >= ABORTABLE_SINCE,
            )
            try:
                check()
                return commit()
            except Unasked as unasked:
                return ensure_future(_verified(unasked, check, commit))

        async def committed() -> TxnOffsetCommitResponse:
            joining = join(call, transactional_id, {producer: [partition.tp]})
            refused = await joining if isinstance(joining, Future) else joining
            check = partial(verify_joined, call, partition, transactional_id, producer, refused)
            return await _verified(None, check, commit)

        return ensure_future(committed())
    except KafkaError as error:
        return refused_transactional_commit(request, commit_write_error(error.code))


async def _verified(
    unasked: Unasked | None, check: Callable[[], None], commit: Callable[[], Answer]
) -> TxnOffsetCommitResponse:
    """Commit once a coordinator elsewhere has been asked, as often as it must be."""
    for _ in range(ASKED_AT_MOST):
        if unasked is not None:
            await unasked.ask()
        try:
            check()
        except Unasked as again:
            unasked = again
            continue
        answer = commit()
        return await answer if isinstance(answer, Future) else answer
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _for_version(code: ErrorCode, call: RequestContext) -> ErrorCode:
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and call.version < LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


HANDLER = Handler(ApiKey.TXN_OFFSET_COMMIT, VersionRange(0, 5), handle, large=True)
