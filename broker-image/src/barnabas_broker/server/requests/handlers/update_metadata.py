"""UpdateMetadata: the controller sends brokers and partitions to this broker."""

from asyncio import Future

from barnabas_broker.controller.controller import Controller
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.requests.handler import Handler, among_others
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(
    request: UpdateMetadataRequest, call: RequestContext
) -> UpdateMetadataResponse | Future[UpdateMetadataResponse]:
    """Answer once every handler uses the new metadata."""
    if not call.allowed_on_cluster(AclOperation.CLUSTER_ACTION):
        return UpdateMetadataResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def obey(controller: Controller) -> ErrorCode:
        refusal = controller.accept_controller(request.controller_epoch, request.broker_epoch)
        if refusal is None:
            controller.member.take_metadata(request)
        return refusal or ErrorCode.NONE

    return call.broker.controller.ask(obey, lambda code: UpdateMetadataResponse(error_code=code))


# Before version 5 there is no broker epoch, and partitions are not by topic (Kafka 2.2).
HANDLER = Handler(
    ApiKey.UPDATE_METADATA, VersionRange(5, 8), handle, large=True, offered=among_others
)
