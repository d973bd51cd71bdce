"""DescribeAcls: the rules that match a filter (Kafka's `AclApis`)."""

from barnabas_broker.security.acl_filters import AclFilter
from barnabas_broker.security.acls import AclOperation, Entries, ResourcePattern
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.acl_requests import filter_of
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(request: DescribeAclsRequest, call: RequestContext) -> Work[DescribeAclsResponse]:
    """Answer from the rules in effect; without an authorizer none are kept."""
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeAclsResponse(error_code=code, error_message=code.message)
    if call.broker.acls is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message="No Authorizer is configured on the broker",
        )
    wanted = filter_of(request)
    resources = []
    for pattern, entries in call.broker.acls.authorizer.rules.entries.items():
        yield
        if wanted.covers(pattern) and (found := _described(wanted, pattern, entries)):
            resources.append(found)
    return DescribeAclsResponse(error_message=None, resources=resources)


def _described(
    wanted: AclFilter, pattern: ResourcePattern, entries: Entries
) -> DescribeAclsResource | None:
    acls = [
        AclDescription(
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for entry in entries
        if wanted.matches(entry)
    ]
    if not acls:
        return None
    return DescribeAclsResource(
        resource_type=pattern.type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern,
        acls=acls,
    )


HANDLER = Handler(ApiKey.DESCRIBE_ACLS, VersionRange(0, 3), handle)
