"""Creating and deleting a topic over one plain socket.

A project that tests with any client, or with none that has an admin interface, still wants a topic
per test. Two requests in Kafka's protocol on a blocking socket are all it takes.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.codec import decode, encode
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas_kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas_kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, api
from barnabas_kafka.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas_broker.testing.secured import Security

# The first versions in which -1 means the broker's default (KIP-464) and errors carry a message
# (KIP-599): every broker since 2.4 speaks them.
CREATE_VERSION = 5
DELETE_VERSION = 5
LOGIN_VERSION = 1
TIMEOUT_S = 30.0
# An answer about one topic is a few hundred bytes; more is not an answer to what was asked.
MAX_RESPONSE_BYTES = 1 << 20

Response = TypeVar("Response", bound=Message)


def create(
    address: tuple[str, int],
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    config: Mapping[str, str] | None = None,
    security: Security | None = None,
) -> None:
    """Create one topic; -1 takes the broker's default. Raises `KafkaError` with its reason."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replication_factor,
                configs=[
                    CreatableTopicConfig(name=key, value=value)
                    for key, value in (config or {}).items()
                ],
            )
        ],
        timeout_ms=int(TIMEOUT_S * 1000),
    )
    asked = ApiKey.CREATE_TOPICS, CREATE_VERSION, request, CreateTopicsResponse
    answer = _ask(address, *asked, security=security)
    for result in answer.topics:
        _check(result.error_code, result.error_message)


def delete(address: tuple[str, int], name: str, *, security: Security | None = None) -> None:
    """Delete one topic; raises `KafkaError` with the broker's reason."""
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=int(TIMEOUT_S * 1000))
    asked = ApiKey.DELETE_TOPICS, DELETE_VERSION, request, DeleteTopicsResponse
    answer = _ask(address, *asked, security=security)
    for result in answer.responses:
        _check(result.error_code, result.error_message)


def _check(code: int, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(code), message)


def _ask(
    address: tuple[str, int],
    key: ApiKey,
    version: int,
    request: Message,
    answer: type[Response],
    *,
    security: Security | None,
) -> Response:
    """One request, one response, on a connection of its own."""
    with ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection(address, timeout=TIMEOUT_S))
        if security is not None:
            connection = stack.enter_context(security.secured(connection))
            _log_in(connection, security)
        return _exchange(connection, key, version, request, answer)


def _log_in(connection: socket.socket, security: Security) -> None:
    handshake = SaslHandshakeRequest(mechanism="PLAIN")
    offered = _exchange(
        connection, ApiKey.SASL_HANDSHAKE, LOGIN_VERSION, handshake, SaslHandshakeResponse
    )
    _check(offered.error_code, None)
    message = SaslAuthenticateRequest(auth_bytes=security.plain_message())
    response = _exchange(
        connection, ApiKey.SASL_AUTHENTICATE, LOGIN_VERSION, message, SaslAuthenticateResponse
    )
    _check(response.error_code, response.error_message)


def _exchange(
    connection: socket.socket,
    key: ApiKey,
    version: int,
    request: Message,
    answer: type[Response],
) -> Response:
    header = encode_request_header(RequestHeader(key, version, 0, "barnabas-testing"))
    message = header + encode(request, version)
    connection.sendall(struct.pack(">i", len(message)) + message)
    (size,) = struct.unpack(">i", _read(connection, 4))
    if not 0 < size <= MAX_RESPONSE_BYTES:
        raise ConnectionError("what answers does not speak Kafka's protocol")
    frame = _read(connection, size)
    _, body = decode_response_header(frame, api(key).response_header_version(version))
    return decode(answer, memoryview(frame)[body:], version)


def _read(connection: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes; a connection that ends early raises ConnectionError."""
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise ConnectionError("the broker closed the connection before it answered")
        received += chunk
    return bytes(received)
