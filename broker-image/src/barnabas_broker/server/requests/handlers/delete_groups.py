"""DeleteGroups: forget groups without members, and all that they have committed (KIP-229)."""

from asyncio import Future
from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.coordinator.group.commits import write_error
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.process.deferred_responses import then, together
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(
    request: DeleteGroupsRequest, call: RequestContext
) -> Work[DeleteGroupsResponse | Future[DeleteGroupsResponse]]:
    """Delete each group by itself; one that has members stays."""
    deleted = yield from each(dict.fromkeys(request.groups_names), partial(_deleted, call))
    return together(deleted, lambda results: DeleteGroupsResponse(results=results))


def _deleted(
    call: RequestContext, group_id: str
) -> DeletableGroupResult | Future[DeletableGroupResult]:
    def refused(error: KafkaError) -> DeletableGroupResult:
        return DeletableGroupResult(group_id=group_id, error_code=write_error(error.code))

    if not call.allowed(AclOperation.DELETE, ResourceType.GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return DeletableGroupResult(group_id=group_id, error_code=code)

    def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        return shard.delete(group_id, waiter, now_ms)

    try:
        result: DeletableGroupResult | Future[DeletableGroupResult] = call.broker.groups.ask(
            group_id, step
        )
    except Exception as error:
        code = refusal(error, "DeleteGroups", group_id).code
        return DeletableGroupResult(group_id=group_id, error_code=code)
    return then(result, lambda deleted: deleted, refused)


HANDLER = Handler(ApiKey.DELETE_GROUPS, VersionRange(0, 2), handle, large=True)
