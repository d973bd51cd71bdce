"""CreateDelegationToken (key 38): issues a delegation token.

Versions:
   1: the client does the waiting of a throttle.
   2: flexible.
   3: tokens for other principals (KIP-373); request adds owner_principal_type,
      owner_principal_name; response adds token_requester_principal_type,
      token_requester_principal_name.
"""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    binary,
    int16,
    int32,
    int64,
    string,
)


class CreatableRenewers(Struct):
    """Element of `renewers` in the request."""

    principal_type: str = string("0+")
    principal_name: str = string("0+")


class CreateDelegationTokenRequest(Request, api_key=38, versions="0-3", flexible="2+"):
    """CreateDelegationToken request."""

    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers, "0+")
    max_lifetime_ms: int = int64("0+")


class CreateDelegationTokenResponse(Response, api_key=38, versions="0-3", flexible="2+"):
    """CreateDelegationToken response."""

    error_code: int = int16("0+")
    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64("0+")
    expiry_timestamp_ms: int = int64("0+")
    max_timestamp_ms: int = int64("0+")
    token_id: str = string("0+")
    hmac: bytes = binary("0+")
    throttle_time_ms: int = int32("0+")
