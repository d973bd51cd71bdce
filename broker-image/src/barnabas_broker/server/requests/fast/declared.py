"""What the declared codec writes, for fast routes whose own codec does not serve it."""

from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import encode_response_header
from barnabas_kafka.protocol.registry import Api
from barnabas_kafka.protocol.schema import Response


def response_frame(api: Api, version: int, correlation_id: int, response: Response) -> bytes:
    """A response as it is sent, its size first."""
    header = encode_response_header(correlation_id, api.response_header_version(version))
    body = header + codec.encode(response, version)
    return len(body).to_bytes(4, "big") + body
