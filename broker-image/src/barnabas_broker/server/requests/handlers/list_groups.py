"""ListGroups: the groups that this broker coordinates, by state and type if asked (KIP-518)."""

from operator import attrgetter

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(request: ListGroupsRequest, call: RequestContext) -> Work[ListGroupsResponse]:
    """List what the caller may know of; filters are words in any case."""
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    everything = call.allowed_on_cluster(AclOperation.DESCRIBE, audited=False)
    loading = call.broker.groups.loading
    groups: list[ListedGroup] = []

    def look(group: Group) -> None:
        if (
            (not states or group.state_name.lower() in states)
            and (not types or group.kind in types)
            and (everything or _may_describe(group.id, call))
        ):
            groups.append(
                ListedGroup(
                    group_id=group.id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state_name,
                    group_type=group.kind,
                )
            )

    # One that cannot be listed is left out, and logged: an entry has no place for an error.
    for group in call.broker.groups.groups():
        each_isolated([group], look, "ListGroups", name=attrgetter("id"))
        yield
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
    return ListGroupsResponse(error_code=code, groups=groups)


def _may_describe(group_id: str, call: RequestContext) -> bool:
    return call.allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group_id, audited=False)


HANDLER = Handler(ApiKey.LIST_GROUPS, VersionRange(0, 5), handle)
