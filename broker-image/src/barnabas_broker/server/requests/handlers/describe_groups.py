"""DescribeGroups: the state of groups, their members and assignments."""

from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(request: DescribeGroupsRequest, call: RequestContext) -> Work[DescribeGroupsResponse]:
    """Describe each group; one that does not exist is dead, and no error.

    So is one of the consumer protocol, which ConsumerGroupDescribe is for. A group that is named
    again is described once: Apache's answer grows with each time, beyond any memory.
    """
    groups = yield from each(dict.fromkeys(request.groups), partial(_answer, request, call))
    return DescribeGroupsResponse(groups=groups)


def _answer(request: DescribeGroupsRequest, call: RequestContext, group_id: str) -> DescribedGroup:
    if not call.allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return DescribedGroup(group_id=group_id, error_code=code)
    try:
        answer = _described(group_id, call.broker.groups.group(group_id))
    except Exception as error:
        code = refusal(error, "DescribeGroups", group_id).code
        return DescribedGroup(group_id=group_id, error_code=code)
    if request.include_authorized_operations:
        answer.authorized_operations = call.allowed_operations(ResourceType.GROUP, group_id)
    return answer


def _described(group_id: str, group: Group | None) -> DescribedGroup:
    if group is None or group.consumers is not None:
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    # Subscriptions and assignments change during a rebalance: only a stable group shows them.
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client.client_id,
                client_host=member.client.host,
                member_metadata=member.metadata(group.protocol) if stable else b"",
                member_assignment=member.assignment if stable else b"",
            )
            for member in group.members.values()
        ],
    )


HANDLER = Handler(ApiKey.DESCRIBE_GROUPS, VersionRange(0, 5), handle, large=True)
