"""LeaveGroup: members go of their own accord, or an administrator takes static ones out."""

from asyncio import Future

from barnabas_broker.coordinator.group.commits import group_write_error
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas_kafka.protocol.registry import ApiKey

SEVERAL_MEMBERS_SINCE = 3


def handle(
    request: LeaveGroupRequest, call: RequestContext
) -> LeaveGroupResponse | Future[LeaveGroupResponse]:
    """Take the members out; before version 3 there is one, and its error is the whole answer."""
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    single = call.version < SEVERAL_MEMBERS_SINCE
    if single:
        request.members = [MemberIdentity(member_id=request.member_id)]
    try:
        left: LeaveGroupResponse | Future[LeaveGroupResponse] = call.broker.groups.ask(
            request.group_id, lambda shard, waiter, now_ms: shard.leave(request, waiter, now_ms)
        )
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    return then(
        left,
        lambda response: _as_single(response) if single else response,
        lambda error: LeaveGroupResponse(error_code=group_write_error(error.code)),
    )


def _as_single(response: LeaveGroupResponse) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=response.members[0].error_code)


HANDLER = Handler(ApiKey.LEAVE_GROUP, VersionRange(0, 5), handle)
