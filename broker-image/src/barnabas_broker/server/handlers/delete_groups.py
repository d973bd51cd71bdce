"""DeleteGroups: forget groups without members, and all that they have committed (KIP-229)."""

from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.coordinator.group.turns import Turn, Waiter
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler, VersionRange
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    """Delete each group by itself; one that has members stays."""
    return DeleteGroupsResponse(
        results=[_deleted(group_id, call) for group_id in dict.fromkeys(request.groups_names)]
    )


def _deleted(group_id: str, call: Call) -> DeletableGroupResult:
    if not call.allowed(AclOperation.DELETE, ResourceType.GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return DeletableGroupResult(group_id=group_id, error_code=code)

    def step(shard: Shard, waiter: Waiter, now_ms: int) -> Turn:
        return shard.delete(group_id, waiter, now_ms)

    try:
        result: DeletableGroupResult = call.broker.groups.ask(group_id, step)
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=error.code)
    return result


HANDLER = Handler(ApiKey.DELETE_GROUPS, VersionRange(0, 2), handle)
