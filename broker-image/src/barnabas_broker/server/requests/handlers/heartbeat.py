"""Heartbeat: a member lives; the answer says whether it must join again."""

from barnabas_broker.coordinator.group.group_coordinator import GroupCoordinator
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas_kafka.protocol.plain_heartbeat import PlainHeartbeat
from barnabas_kafka.protocol.registry import ApiKey


def handle(request: HeartbeatRequest, call: RequestContext) -> HeartbeatResponse:
    """Prolong the member's session."""
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return HeartbeatResponse(error_code=beat(request, call.broker.groups))


def beat(request: HeartbeatRequest | PlainHeartbeat, groups: GroupCoordinator) -> ErrorCode:
    """What a group says to a member that may speak to it."""
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    try:
        return groups.shard(request.group_id).heartbeat(request)
    except KafkaError as error:
        # While groups are read back every member is taken to live.
        loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE if loading else error.code


HANDLER = Handler(ApiKey.HEARTBEAT, VersionRange(0, 4), handle)
