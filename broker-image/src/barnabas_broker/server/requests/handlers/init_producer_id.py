"""InitProducerId: a producer id and epoch (KIP-98, KIP-360).

Producers without a transactional id get a new id with epoch 0, whatever they had before; for
others the transaction coordinator decides.
"""

import logging
from asyncio import Future, ensure_future

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.shard import Initialisation, write_error
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas_kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

log = logging.getLogger(__name__)

FENCED_SINCE = 4
"""Older clients know INVALID_PRODUCER_EPOCH for what is PRODUCER_FENCED now."""


def handle(
    request: InitProducerIdRequest, call: RequestContext
) -> InitProducerIdResponse | Future[InitProducerIdResponse]:
    """Give a producer its id, once it is clear that the caller may have it."""
    error = _refusal(request, call)
    if error is not None:
        return _refused(error)
    if request.transactional_id is None:
        return ensure_future(_granted(call))
    asked = Initialisation(
        transactional_id=request.transactional_id,
        timeout_ms=request.transaction_timeout_ms,
        expected=Producer(request.producer_id, request.producer_epoch),
    )
    return ensure_future(_initialised(asked, call))


async def _granted(call: RequestContext) -> InitProducerIdResponse:
    try:
        producer_id = await call.broker.producer_ids.next(call.now_ms)
    except CoordinationError as error:
        return _no_id(call, None, error)
    return InitProducerIdResponse(producer_id=producer_id)


async def _initialised(asked: Initialisation, call: RequestContext) -> InitProducerIdResponse:
    try:
        granted = await call.broker.transactions.initialise(asked)
    except CoordinationError as error:
        return _no_id(call, asked.transactional_id, error)
    except KafkaError as error:
        return _refused(write_error(error.code))
    if granted.code is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        return _refused(ErrorCode.INVALID_PRODUCER_EPOCH)
    producer = granted.producer
    return InitProducerIdResponse(
        error_code=granted.code, producer_id=producer.id, producer_epoch=producer.epoch
    )


def _no_id(
    call: RequestContext, transactional_id: str | None, error: CoordinationError
) -> InitProducerIdResponse:
    log.warning(
        "No producer id allocated: client=%s transactional.id=%s %s",
        call.client_host, transactional_id, error,
    )  # fmt: skip
    # What producers try again after (KIP-730 answers it, too).
    return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_epoch=NO_PRODUCER_EPOCH)


def _refusal(request: InitProducerIdRequest, call: RequestContext) -> ErrorCode | None:
    transactional_id = request.transactional_id
    if transactional_id is not None:
        resource = ResourceType.TRANSACTIONAL_ID
        if not call.allowed(AclOperation.WRITE, resource, transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
    elif not (
        call.allowed_on_cluster(AclOperation.IDEMPOTENT_WRITE, audited=False)
        or call.allowed_on_any(AclOperation.WRITE, ResourceType.TOPIC)  # KIP-679.
    ):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return ErrorCode.INVALID_REQUEST
    return None


HANDLER = Handler(ApiKey.INIT_PRODUCER_ID, VersionRange(0, 5), handle)
