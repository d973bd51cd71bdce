"""A client of bare sockets, for what no real client would send.

Its messages go through our codecs; that those write Kafka's bytes is proven in tests/oracle.
"""

from __future__ import annotations

import select
import socket
import struct
from types import TracebackType
from typing import Self, TypeVar

from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from barnabas_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas_kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas_kafka.protocol.registry import api
from barnabas_kafka.protocol.schema import Request, Response
from barnabas_kafka.records.batch import headers
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.clients import START_MS
from tests.waiting import ANSWER, seconds

R = TypeVar("R", bound=Response)


def frame(request: Request, version: int, correlation_id: int = 1) -> bytes:
    """A whole request with its length in front."""
    header = RequestHeader(request.api_key, version, correlation_id, "wire")
    return sized(encode_request_header(header) + codec.encode(request, version))


def sized(payload: bytes) -> bytes:
    """Any bytes with their length in front."""
    return struct.pack(">i", len(payload)) + payload


def metadata(*topics: str) -> MetadataRequest:
    """Metadata of some topics, which are not created by asking."""
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
    )


def produce(topic: str, records: bytes, *, acks: int = -1, partition: int = 0) -> ProduceRequest:
    """Produce of one partition."""
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def fetch(topic: str, offset: int, *, max_wait_ms: int = 0, min_bytes: int = 1) -> FetchRequest:
    """Fetch of one partition, outside of any session."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def some_batch(*values: bytes) -> bytes:
    """One batch of keyless records."""
    return build_batch([(START_MS, None, value, ()) for value in values or (b"value",)])


def stored_codecs(bootstrap: str, topic: str) -> set[Codec]:
    """The codecs of the batches in the first partition, as they are stored."""
    with Wire(bootstrap) as connection:
        answer = connection.ask(fetch(topic, 0), FetchResponse, 11)
    found = answer.responses[0].partitions[0].records
    assert isinstance(found, (bytes, memoryview))
    return {header.codec for _, header in headers(found, allow_partial=True)}


class Wire:
    """One connection."""

    def __init__(
        self, bootstrap: str, *, timeout_s: float | None = None, source: str | None = None
    ) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection(
            (host, int(port)),
            timeout=timeout_s or seconds(ANSWER),
            source_address=None if source is None else (source, 0),
        )
        # Every send shall leave as a segment of its own.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    @property
    def timeout_s(self) -> float | None:
        """How long is waited for the next bytes, before TimeoutError."""
        return self._socket.gettimeout()

    @timeout_s.setter
    def timeout_s(self, limit_s: float) -> None:
        self._socket.settimeout(limit_s)

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The payload of the next response."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def receive(self, response: type[R], version: int, correlation_id: int = 1) -> R:
        """The next response, which must be to this request and end where its frame does."""
        data = self.receive_frame()
        header_version = api(response.api_key).response_header_version(version)
        found, position = decode_response_header(data, header_version)
        assert found == correlation_id
        message, end = codec.decode_from(response, data, version, position)
        assert end == len(data)
        return message

    def ask(self, request: Request, response: type[R], version: int) -> R:
        """Send a request and wait for its response."""
        self.send(frame(request, version))
        return self.receive(response, version)

    def log_in(self, name: str, password: str) -> None:
        """Authenticate with SASL PLAIN."""
        began = self.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
        assert not began.error_code, began
        words = SaslAuthenticateRequest(auth_bytes=f"\0{name}\0{password}".encode())
        ended = self.ask(words, SaslAuthenticateResponse, 2)
        assert not ended.error_code, ended

    def is_silent(self) -> bool:
        """Whether nothing has arrived, not even the end of the connection."""
        return not select.select([self._socket], [], [], 0)[0]

    def assert_closed(self) -> None:
        """The broker closes the connection without another byte."""
        try:
            assert self._socket.recv(1) == b""
        except ConnectionResetError:
            pass

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise EOFError(f"the connection ended {size - len(data)} bytes early")
            data += more
        return bytes(data)
