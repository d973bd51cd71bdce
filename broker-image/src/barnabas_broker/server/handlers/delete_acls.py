"""DeleteAcls: removes no rule, for there are none (Kafka's AclApis without an authorizer)."""

from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler
from barnabas_broker.server.turns import Work, each
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(request: DeleteAclsRequest, call: Call) -> Work[DeleteAclsResponse]:
    """Say of each that access is not controlled."""
    if call.allowed_on_cluster(AclOperation.ALTER):
        refusal = DeleteAclsFilterResult(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="No authorizer is configured."
        )
    else:
        refusal = DeleteAclsFilterResult(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None
        )
    refused = yield from each(request.filters, lambda _: refusal)
    return DeleteAclsResponse(filter_results=refused)


HANDLER = Handler(ApiKey.DELETE_ACLS, VersionRange(0, 3), handle, large=True)
