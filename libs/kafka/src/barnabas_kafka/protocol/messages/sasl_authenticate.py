"""SaslAuthenticate (key 36): carries one SASL token each way.

Versions:
   1: how long the session lasts (KIP-368); response adds session_lifetime_ms.
   2: flexible.
"""

from barnabas_kafka.protocol.schema import Request, Response, binary, int16, int64, string


class SaslAuthenticateRequest(Request, api_key=36, versions="0-2", flexible="2+"):
    """SaslAuthenticate request."""

    auth_bytes: bytes = binary("0+")


class SaslAuthenticateResponse(Response, api_key=36, versions="0-2", flexible="2+"):
    """SaslAuthenticate response."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = binary("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)
