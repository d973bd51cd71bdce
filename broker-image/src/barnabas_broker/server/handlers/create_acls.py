"""CreateAcls: adds no rule, for nobody would follow it (Kafka's AclApis without an authorizer)."""

from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler
from barnabas_broker.server.turns import Work, each
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(request: CreateAclsRequest, call: Call) -> Work[CreateAclsResponse]:
    """Say of each that access is not controlled."""
    if call.allowed_on_cluster(AclOperation.ALTER):
        refusal = AclCreationResult(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="No authorizer is configured."
        )
    else:
        refusal = AclCreationResult(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None
        )
    refused = yield from each(request.creations, lambda _: refusal)
    return CreateAclsResponse(results=refused)


HANDLER = Handler(ApiKey.CREATE_ACLS, VersionRange(0, 3), handle, large=True)
