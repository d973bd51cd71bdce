"""One request at a time over a plain socket, for what librdkafka cannot ask.

Sizes of log directories, supported versions, settings of all brokers: the project's own codecs
speak them. Only plaintext connections are made; a client property that asks for another protocol is
refused rather than passed over.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from barnabas_broker.cli.client import CONTROLLER_POLL_S, Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Request, Response

RESPONSE_BYTES_MAX = 256 << 20  # Of what is no broker the first four bytes could be any number.
CLIENT_ID = "barnabas-cli"

Answer = TypeVar("Answer", bound=Response)


class Wire:
    """A connection to one broker; versions are the newest that both sides know."""

    def __init__(self, address: tuple[str, int], timeout_s: float) -> None:
        self.address = f"{address[0]}:{address[1]}"
        self._correlation_id = 0
        try:
            self._socket = socket.create_connection(address, timeout_s)
        except OSError as error:
            raise CommandError(f"cannot reach {self.address}: {error}") from None
        # Version 0, for every broker there ever was answers it.
        told = self._ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in told.api_keys}

    def ask(self, request: Request, kind: type[Answer]) -> Answer:
        """The answer; CommandError where none comes, or the broker does not know the request."""
        ours = registry.api(ApiKey(request.api_key)).request
        low, high = self.versions.get(request.api_key, (0, -1))
        version = min(high, ours.versions.max)
        if version < max(low, ours.versions.min):
            name = ApiKey(request.api_key).name
            raise CommandError(f"the broker at {self.address} does not answer {name} as we know it")
        return self._ask(request, kind, version)

    def _ask(self, request: Request, kind: type[Answer], version: int) -> Answer:
        self._correlation_id += 1
        header = RequestHeader(request.api_key, version, self._correlation_id, CLIENT_ID)
        frame = encode_request_header(header) + codec.encode(request, version)
        try:
            self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
            size = int.from_bytes(self._receive(4), "big")
            if size > RESPONSE_BYTES_MAX:
                raise CommandError(f"what answers at {self.address} is not a Kafka broker")
            answer = self._receive(size)
        except (OSError, EOFError) as error:
            raise CommandError(f"no answer from {self.address}: {error}") from None
        header_version = registry.api(request.api_key).response_header_version(version)
        try:
            _, body = decode_response_header(answer, header_version)
            decoded, _ = codec.decode_from(kind, answer, version, body)
        except codec.DecodeError as error:
            raise CommandError(f"cannot read what {self.address} answers: {error}") from None
        return decoded

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            chunk = self._socket.recv(size - len(received))
            if not chunk:
                raise EOFError("it closed the connection")
            received += chunk
        return bytes(received)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()


def broker_addresses(connection: Connection) -> dict[int, tuple[str, int]]:
    """Where every broker of the cluster is, by id."""
    return addresses(_metadata(connection))


def ask_controller(
    connection: Connection,
    request: Request,
    kind: type[Answer],
    *,
    refused: Callable[[Answer], bool],
) -> tuple[Answer, MetadataResponse]:
    """What the controller answers, and then tells of brokers and topics.

    Asked again until the time is over while there is none, or where who was it is so no longer;
    `refused` says whether that is what an answer says.
    """
    give_up_at = time.monotonic() + connection.timeout_s
    pause = threading.Event()
    while True:
        told = _metadata(connection)
        address = addresses(told).get(told.controller_id)
        if address is not None:
            with Wire(address, connection.timeout_s) as wire:
                answer = wire.ask(request, kind)
                if not refused(answer):
                    return answer, wire.ask(MetadataRequest(topics=None), MetadataResponse)
        if time.monotonic() > give_up_at:
            raise CommandError("the cluster has no controller at the moment: try again")
        pause.wait(CONTROLLER_POLL_S)


def addresses(told: MetadataResponse) -> dict[int, tuple[str, int]]:
    """Where the brokers are, of an answer that is there already."""
    return {broker.node_id: (broker.host, broker.port) for broker in told.brokers}


def _metadata(connection: Connection) -> MetadataResponse:
    """Brokers and controller, of whichever broker answers."""
    protocol = connection.properties.get("security.protocol", "PLAINTEXT")
    if protocol.upper() != "PLAINTEXT":
        raise CommandError(f"security.protocol={protocol} is not supported by this tool")
    connection.knock()
    problem = CommandError("no address")
    for address in connection.bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            with Wire((host.strip("[]"), int(port)), connection.timeout_s) as wire:
                return wire.ask(MetadataRequest(topics=[]), MetadataResponse)
        except CommandError as error:
            problem = error
    raise problem
