"""Heartbeat: a member lives; the answer says whether it must join again."""

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.fast.heartbeat import heartbeats
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.group_values import GroupHeartbeat
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas_kafka.protocol.registry import ApiKey


def handle(request: HeartbeatRequest, call: RequestContext) -> HeartbeatResponse:
    """Prolong the member's session."""
    return HeartbeatResponse(error_code=decide(GroupHeartbeat.of(request), call))


def decide(request: GroupHeartbeat, call: RequestContext) -> ErrorCode:
    """The error code for the member, for both routes."""
    group_id = request.group_id
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    try:
        return call.broker.groups.shard(group_id).heartbeat(request)
    except KafkaError as error:
        # While groups are read back every member is taken to live.
        loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE if loading else error.code


HANDLER = Handler(ApiKey.HEARTBEAT, VersionRange(0, 4), handle, fast=heartbeats(decide))
