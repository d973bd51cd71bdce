"""JoinGroup: enter a group; the answer waits until the rebalance that it takes is over."""

from typing import Any

from barnabas_broker.coordinator.group.commits import group_write_error
from barnabas_broker.coordinator.group.joining import Join
from barnabas_broker.coordinator.group.members import Client
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.coordinator.waiting import Parked
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.fast.rebalance import COPIED_BYTES_MAX, joins
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.group_values import GroupJoin
from barnabas_kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas_kafka.protocol.registry import ApiKey


def handle(request: JoinGroupRequest, call: RequestContext) -> Any:
    """Let the group decide; gives the response, or a Future of it."""
    return decide(GroupJoin.of(request, call.client_id), call)


def decide(request: GroupJoin, call: RequestContext, waiter: Parked | None = None) -> Any:
    """The response, or the waiter for it: `waiter`, a Future without one."""
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return JoinGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        code = ErrorCode.INVALID_GROUP_ID
        return JoinGroupResponse(error_code=code, member_id=request.member_id)
    client = Client(request.client_id, f"/{call.client_host}")

    def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        return shard.join(Join(request, call.version, client, waiter), now_ms)

    def refuse(error: KafkaError) -> JoinGroupResponse:
        return refusal(error, request.member_id)

    try:
        return call.broker.groups.ask(request.group_id, step, refuse, waiter)
    except KafkaError as error:
        return JoinGroupResponse(error_code=error.code, member_id=request.member_id)


def refusal(error: KafkaError, member_id: str) -> JoinGroupResponse:
    """The response to a member where the result is not committed."""
    return JoinGroupResponse(error_code=group_write_error(error.code), member_id=member_id)


def too_large(size: int, call: RequestContext) -> JoinGroupResponse | None:
    """The response to a request of more than any group takes: to copy it alone takes long."""
    if size <= max(COPIED_BYTES_MAX, call.broker.groups.join_bytes_max):
        return None
    return JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED)


HANDLER = Handler(
    ApiKey.JOIN_GROUP,
    VersionRange(0, 9),
    handle,
    fast=joins(decide, refusal),
    too_large=too_large,
)
