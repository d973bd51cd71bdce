"""SyncGroup: bring the leader's assignment, or fetch one's own; waits for the leader."""

from typing import Any

from barnabas_broker.coordinator.group.commits import group_write_error
from barnabas_broker.coordinator.waiting import Parked
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.fast.rebalance import syncs
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.group_values import GroupSync
from barnabas_kafka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas_kafka.protocol.registry import ApiKey

PROTOCOL_SINCE = 5
"""From this version on members say which protocol they mean (KIP-559)."""


def handle(request: SyncGroupRequest, call: RequestContext) -> Any:
    """Let the group decide; gives the response, or a Future of it."""
    return decide(GroupSync.of(request), call)


def decide(request: GroupSync, call: RequestContext, waiter: Parked | None = None) -> Any:
    """The response, or the waiter for it: `waiter`, a Future without one."""
    code = _fault(request, call)
    if code is not None:
        return SyncGroupResponse(error_code=code)
    groups = call.broker.groups
    try:
        return groups.assignment(request) or groups.ask(
            request.group_id,
            lambda shard, waiter, now_ms: shard.sync(request, waiter, now_ms),
            refusal,
            waiter,
        )
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Old clients retry on no other code here: they join once more.
            code = ErrorCode.REBALANCE_IN_PROGRESS
        return SyncGroupResponse(error_code=code)


def refusal(error: KafkaError, _member_id: str = "") -> SyncGroupResponse:
    """The response to a member where the result is not committed."""
    return SyncGroupResponse(error_code=group_write_error(error.code))


def _fault(request: GroupSync, call: RequestContext) -> ErrorCode | None:
    if call.version >= PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None if request.group_id else ErrorCode.INVALID_GROUP_ID


HANDLER = Handler(ApiKey.SYNC_GROUP, VersionRange(0, 5), handle, fast=syncs(decide, refusal))
