"""DescribeAcls: there are none, for nobody asks them (Kafka's AclApis without an authorizer)."""

from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(request: DescribeAclsRequest, call: Call) -> DescribeAclsResponse:
    """Say that access is not controlled: an empty list would say that nobody may do anything."""
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeAclsResponse(error_code=code, error_message=None)
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message="No authorizer is configured on the broker.",
    )


HANDLER = Handler(ApiKey.DESCRIBE_ACLS, VersionRange(0, 3), handle)
