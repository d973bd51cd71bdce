"""CreateAcls (key 30): adds access rules.

Versions:
   1: request adds resource_pattern_type.
   2: flexible.
   3: USER resources (KIP-373).
"""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    string,
)


class AclCreation(Struct):
    """Element of `creations` in the request."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class CreateAclsRequest(Request, api_key=30, versions="0-3", flexible="2+"):
    """CreateAcls request."""

    creations: list[AclCreation] = array(AclCreation, "0+")


class AclCreationResult(Struct):
    """Element of `results` in the response."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class CreateAclsResponse(Response, api_key=30, versions="0-3", flexible="2+"):
    """CreateAcls response."""

    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array(AclCreationResult, "0+")
