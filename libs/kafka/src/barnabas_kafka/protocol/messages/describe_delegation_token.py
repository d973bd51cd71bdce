"""DescribeDelegationToken (key 41): lists delegation tokens.

Null owners ask for all.

Versions:
   1: the client does the waiting of a throttle.
   2: flexible.
   3: the requester of a token (KIP-373); response adds token_requester_principal_type,
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


class DescribeDelegationTokenOwner(Struct):
    """Element of `owners` in the request."""

    principal_type: str = string("0+")
    principal_name: str = string("0+")


class DescribeDelegationTokenRequest(Request, api_key=41, versions="0-3", flexible="2+"):
    """DescribeDelegationToken request."""

    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, "0+", nullable="0+"
    )


class DescribedDelegationTokenRenewer(Struct):
    """Element of `renewers` in the response."""

    principal_type: str = string("0+")
    principal_name: str = string("0+")


class DescribedDelegationToken(Struct):
    """Element of `tokens` in the response."""

    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64("0+")
    expiry_timestamp: int = int64("0+")
    max_timestamp: int = int64("0+")
    token_id: str = string("0+")
    hmac: bytes = binary("0+")
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer, "0+")


class DescribeDelegationTokenResponse(Response, api_key=41, versions="0-3", flexible="2+"):
    """DescribeDelegationToken response."""

    error_code: int = int16("0+")
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken, "0+")
    throttle_time_ms: int = int32("0+")
