"""ExpireDelegationToken (key 40): shortens or ends the life of a delegation token.

Versions:
   1: the client does the waiting of a throttle.
   2: flexible.
"""

from barnabas_kafka.protocol.schema import Request, Response, binary, int16, int32, int64


class ExpireDelegationTokenRequest(Request, api_key=40, versions="0-2", flexible="2+"):
    """ExpireDelegationToken request."""

    hmac: bytes = binary("0+")
    expiry_time_period_ms: int = int64("0+")


class ExpireDelegationTokenResponse(Response, api_key=40, versions="0-2", flexible="2+"):
    """ExpireDelegationToken response."""

    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
