"""Whether a broker serves: one connection, one ApiVersions request, for probes.

A probe is run every few seconds, beside the broker and in its memory limit, so this imports the
codec and a socket and no client library.
"""

from __future__ import annotations

import socket

from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.registry import ApiKey

VERSION = 0  # Every broker there ever was answers it.
RESPONSE_BYTES_MAX = 64 * 1024  # A broker's list of APIs takes less than one of these.


def ask(address: str, timeout_s: float) -> int:
    """Return how many APIs the broker at `host:port` serves.

    Raises CommandError, in one line, where the broker is unreachable in time or what answers is no
    broker; InputError where that is no address.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f"{address!r} is not a host:port")
    header = RequestHeader(ApiKey.API_VERSIONS, VERSION, 1, "barnabas-ready")
    request = encode_request_header(header) + codec.encode(ApiVersionsRequest(), VERSION)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection:
            connection.sendall(len(request).to_bytes(4, "big") + request)
            size = int.from_bytes(_receive(connection, 4), "big")
            if size > RESPONSE_BYTES_MAX:
                raise CommandError(f"not ready: what answers at {address} is not a Kafka broker")
            frame = _receive(connection, size)
        _, body = decode_response_header(frame, 0)
        response, _ = codec.decode_from(ApiVersionsResponse, frame, VERSION, body)
    except (OSError, UnicodeError, EOFError) as error:  # The second for an invalid host.
        raise CommandError(f"not ready: {address}: {error}") from None
    except codec.DecodeError:
        raise CommandError(f"not ready: what answers at {address} is not a Kafka broker") from None
    if response.error_code != ErrorCode.NONE:
        raise CommandError(f"not ready: {address} answers {ErrorCode(response.error_code).name}")
    return len(response.api_keys)


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise EOFError("it closed the connection")
        received += chunk
    return bytes(received)
