"""InitProducerId: a producer id for idempotent producers (KIP-98, KIP-360).

Producers that give a transactional id need a transaction coordinator. This broker has none yet and
says so; it does not hand out an id that would not fence anybody.
"""

import logging
from asyncio import Future, ensure_future

from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas_kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

log = logging.getLogger(__name__)


def handle(
    request: InitProducerIdRequest, call: Call
) -> InitProducerIdResponse | Future[InitProducerIdResponse]:
    """A new producer id with epoch 0, whatever the producer had before."""
    error = _refusal(request, call)
    if error is not None:
        return _refused(error)
    return ensure_future(_granted(call))


async def _granted(call: Call) -> InitProducerIdResponse:
    try:
        producer_id = await call.broker.producer_ids.next(call.now_ms)
    except CoordinationError as error:
        log.warning("no producer id for %s: %s", call.client_host, error)
        # What producers without a transactional id try again after (KIP-730 answers it, too).
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id)


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_epoch=NO_PRODUCER_EPOCH)


def _refusal(request: InitProducerIdRequest, call: Call) -> ErrorCode | None:
    if request.transactional_id is not None:
        return ErrorCode.INVALID_REQUEST
    if not call.allowed_on_cluster(AclOperation.IDEMPOTENT_WRITE):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return ErrorCode.INVALID_REQUEST
    return None


HANDLER = Handler(ApiKey.INIT_PRODUCER_ID, VersionRange(0, 5), handle)
