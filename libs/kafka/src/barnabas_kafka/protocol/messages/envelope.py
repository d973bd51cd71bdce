"""Envelope (key 58): forwards another request to the controller with its principal (KIP-590)."""

from barnabas_kafka.protocol.schema import Request, Response, binary, int16


class EnvelopeRequest(Request, api_key=58, versions="0", flexible="0+"):
    """Envelope request."""

    request_data: bytes = binary("0+")
    request_principal: bytes | None = binary("0+", nullable="0+")
    client_host_address: bytes = binary("0+")


class EnvelopeResponse(Response, api_key=58, versions="0", flexible="0+"):
    """Envelope response."""

    response_data: bytes | None = binary("0+", nullable="0+", default=None)
    error_code: int = int16("0+")
