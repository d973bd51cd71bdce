"""RenewDelegationToken (key 39): lengthens the life of a delegation token.

Versions:
   1: the client does the waiting of a throttle.
   2: flexible.
"""

from barnabas_kafka.protocol.schema import Request, Response, binary, int16, int32, int64


class RenewDelegationTokenRequest(Request, api_key=39, versions="0-2", flexible="2+"):
    """RenewDelegationToken request."""

    hmac: bytes = binary("0+")
    renew_period_ms: int = int64("0+")


class RenewDelegationTokenResponse(Response, api_key=39, versions="0-2", flexible="2+"):
    """RenewDelegationToken response."""

    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
