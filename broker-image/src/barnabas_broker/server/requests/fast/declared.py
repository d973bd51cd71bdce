"""What the declared codec reads and writes, for fast routes whose own codec does not serve it."""

from typing import Any

from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import decode_client, encode_response_header
from barnabas_kafka.protocol.registry import Api
from barnabas_kafka.protocol.schema import Response


def request_of(api: Api, frame: memoryview, call: RequestContext) -> Any:
    """The request that fills a frame (without its size)."""
    _, body = decode_client(frame, 0, api.request_header_version(call.version))
    return codec.decode_from(api.request, frame, call.version, body)[0]


def response_frame(api: Api, version: int, correlation_id: int, response: Response) -> bytes:
    """A response as it is sent, its size first."""
    header = encode_response_header(correlation_id, api.response_header_version(version))
    body = header + codec.encode(response, version)
    return len(body).to_bytes(4, "big") + body
