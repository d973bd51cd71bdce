"""EndTxn: commit or abort a transaction; answered when the decision counts (KIP-98).

From version 5 on the answer holds the epoch of the producer's next transaction (KIP-890).
"""

import logging
from asyncio import Future, ensure_future

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.shard import End, write_error
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

FENCED_SINCE = 2
"""Older clients know INVALID_PRODUCER_EPOCH for what is PRODUCER_FENCED now."""
BUMPED_SINCE = 5

log = logging.getLogger(__name__)


def handle(request: EndTxnRequest, call: RequestContext) -> EndTxnResponse | Future[EndTxnResponse]:
    """Have the coordinator decide; partitions learn of it afterwards."""
    transactional_id = request.transactional_id
    if not call.allowed(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)

    def answer(code: ErrorCode) -> EndTxnResponse:
        if code is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return EndTxnResponse(error_code=code)

    producer = Producer(request.producer_id, request.producer_epoch)
    if call.version >= BUMPED_SINCE:
        return ensure_future(_bumped(End(transactional_id, producer, request.committed), call))
    try:
        ended = call.broker.transactions.end(transactional_id, producer, commit=request.committed)
    except KafkaError as error:
        return answer(error.code)
    return then(ended, answer, lambda error: answer(write_error(error.code)))


async def _bumped(request: End, call: RequestContext) -> EndTxnResponse:
    try:
        granted = await call.broker.transactions.end_with_bump(request)
    except CoordinationError as error:
        log.warning(
            "No producer id allocated: client=%s transactional.id=%s %s",
            call.client_host, request.transactional_id, error,
        )  # fmt: skip
        return EndTxnResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    except KafkaError as error:
        return EndTxnResponse(error_code=write_error(error.code))
    next_id, next_epoch = granted.producer
    return EndTxnResponse(error_code=granted.code, producer_id=next_id, producer_epoch=next_epoch)


HANDLER = Handler(ApiKey.END_TXN, VersionRange(0, 5), handle)
