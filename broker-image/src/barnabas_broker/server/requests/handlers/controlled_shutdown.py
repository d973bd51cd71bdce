"""ControlledShutdown: a broker that is about to stop has its leaders moved by the controller."""

from asyncio import Future

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import ControlledShutdown
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.requests.handler import Handler, among_others
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(
    request: ControlledShutdownRequest, call: RequestContext
) -> ControlledShutdownResponse | Future[ControlledShutdownResponse]:
    """Answer with what that broker still leads, as no other live replica is in sync."""
    if not call.allowed_on_cluster(AclOperation.CLUSTER_ACTION):
        return ControlledShutdownResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def move(controller: Controller) -> tuple[ErrorCode, list[TopicPartition]]:
        try:
            controller.check_active()
            stopping = ControlledShutdown(request.broker_id, request.broker_epoch)
            left = controller.active.process(stopping, now_ms=call.now_ms)
        except KafkaError as error:
            return error.code, []
        return ErrorCode.NONE, left

    def answer(moved: tuple[ErrorCode, list[TopicPartition]]) -> ControlledShutdownResponse:
        code, left = moved
        return ControlledShutdownResponse(
            error_code=code,
            remaining_partitions=[
                RemainingPartition(topic_name=tp.topic, partition_index=tp.partition) for tp in left
            ],
        )

    return call.broker.controller.ask(move, answer)


HANDLER = Handler(ApiKey.CONTROLLED_SHUTDOWN, VersionRange(0, 3), handle, offered=among_others)
