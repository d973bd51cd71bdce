"""JoinGroup: enter a group; the answer waits until the rebalance that it takes is over."""

from asyncio import Future

from barnabas_broker.coordinator.group.commits import group_write_error
from barnabas_broker.coordinator.group.joining import Join
from barnabas_broker.coordinator.group.members import Client
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas_kafka.protocol.registry import ApiKey


def handle(
    request: JoinGroupRequest, call: RequestContext
) -> JoinGroupResponse | Future[JoinGroupResponse]:
    """Let the group decide, once it is clear that the caller may speak to it."""
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return JoinGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        code = ErrorCode.INVALID_GROUP_ID
        return JoinGroupResponse(error_code=code, member_id=request.member_id)
    client = Client(call.client_id or "", f"/{call.client_host}")

    def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        return shard.join(Join.of(request, call.version, client=client, waiter=waiter), now_ms)

    try:
        answer: JoinGroupResponse | Future[JoinGroupResponse] = call.broker.groups.ask(
            request.group_id, step, lambda error: refusal(error, request.member_id)
        )
    except KafkaError as error:
        return JoinGroupResponse(error_code=error.code, member_id=request.member_id)
    return answer


def refusal(error: KafkaError, member_id: str) -> JoinGroupResponse:
    """What a member is told where what was decided does not count."""
    return JoinGroupResponse(error_code=group_write_error(error.code), member_id=member_id)


HANDLER = Handler(ApiKey.JOIN_GROUP, VersionRange(0, 9), handle)
