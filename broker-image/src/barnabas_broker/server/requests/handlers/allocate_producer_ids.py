"""AllocateProducerIds: the controller claims a block of producer ids for another broker.

Our own brokers claim theirs from the coordination data; Apache's, since 3.0, ask the controller.
"""

from asyncio import Future

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.transitions.producer_ids import BLOCK_SIZE
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.requests.handler import Handler, among_others
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = AllocateProducerIdsResponse


def handle(
    request: AllocateProducerIdsRequest, call: RequestContext
) -> Response | Future[Response]:
    """Answer with the first id of an unused block."""
    if not call.allowed_on_cluster(AclOperation.CLUSTER_ACTION):
        return Response(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def claim(controller: Controller) -> Response:
        try:
            first = controller.allocate_producer_ids(
                request.broker_id,
                request.broker_epoch,
                above=call.broker.producer_ids.above,
                now_ms=call.now_ms,
            )
        except KafkaError as error:
            return Response(error_code=error.code)
        return Response(producer_id_start=first, producer_id_len=BLOCK_SIZE)

    return call.broker.controller.run(claim)


HANDLER = Handler(ApiKey.ALLOCATE_PRODUCER_IDS, VersionRange(0, 0), handle, offered=among_others)
