"""What DescribeAcls and DeleteAcls share: the filter of a request."""

from typing import Protocol

from barnabas_broker.security.acl_filters import AclFilter
from barnabas_broker.security.acls import (
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
    from_code,
)
from barnabas_broker.server.requests.handler import UnanswerableError


class FilterFields(Protocol):
    """A filter as requests carry it."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def filter_of(asked: FilterFields) -> AclFilter:
    """The filter; raises UnanswerableError for one with UNKNOWN, as Kafka ends the connection.

    Numbers that no release has given out yet find nothing.
    """
    codes = (
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.operation,
        asked.permission_type,
    )
    if 0 in codes:
        raise UnanswerableError("a filter of ACLs names something unknown")
    return AclFilter(
        from_code(ResourceType, asked.resource_type_filter),
        asked.resource_name_filter,
        from_code(PatternType, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        from_code(AclOperation, asked.operation),
        from_code(Permission, asked.permission_type),
    )
