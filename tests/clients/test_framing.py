"""Frames cut anywhere, and frames that are none: what a connection survives and what ends it."""

from __future__ import annotations

import struct

import pytest

from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import RequestHeader, encode_request_header
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.protocol.registry import ApiKey
from tests.clients import wire
from tests.clients.brokers import Broker
from tests.clients.wire import Wire

SOCKET_REQUEST_MAX_BYTES = 104_857_600
UNSUPPORTED_VERSION = 35
INVALID_REQUEST = 42


def round_trip(connection: Wire) -> None:
    """Something the broker answers, to see that it is there and has read what came before."""
    connection.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)


def test_request_cut_at_every_byte(broker: Broker, topic: str) -> None:
    """The first part of a request waits for the rest, wherever it is cut, and nothing is lost."""
    request = wire.frame(wire.produce(topic, wire.some_batch()), 9)
    with Wire(broker.bootstrap) as connection, Wire(broker.bootstrap) as other:
        for cut in range(1, len(request)):
            connection.send(request[:cut])
            round_trip(other)  # the broker has met the first part before the second comes
            connection.send(request[cut:])
            response = connection.receive(ProduceResponse, 9)
            partition = response.responses[0].partition_responses[0]
            assert (partition.error_code, partition.base_offset) == (0, cut - 1)


def test_request_byte_by_byte(broker: Broker, topic: str) -> None:
    """A request that comes in as many segments as it has bytes."""
    with Wire(broker.bootstrap) as connection:
        for byte in wire.frame(wire.metadata(topic), 12):
            connection.send(bytes([byte]))
        assert connection.receive(MetadataResponse, 12).topics[0].name == topic


def test_end_of_one_request_with_the_beginning_of_the_next(broker: Broker, topic: str) -> None:
    """Segments need not end where frames do."""
    first, second = (wire.frame(wire.metadata(topic), 9, number) for number in (1, 2))
    both = first + second
    with Wire(broker.bootstrap) as connection, Wire(broker.bootstrap) as other:
        for cut in range(len(first) - 5, len(first) + 6):
            connection.send(both[:cut])
            round_trip(other)
            connection.send(both[cut:])
            connection.receive(MetadataResponse, 9, 1)
            connection.receive(MetadataResponse, 9, 2)


def test_a_large_request_in_pieces_does_not_block_other_clients(broker: Broker, topic: str) -> None:
    """Another client is served between the pieces of a request of nearly 1 MB."""
    value = bytes(900_000)
    request = wire.frame(wire.produce(topic, wire.some_batch(value)), 9)
    with Wire(broker.bootstrap) as connection, Wire(broker.bootstrap) as other:
        for start in range(0, len(request), 100_000):
            connection.send(request[start : start + 100_000])
            round_trip(other)
        response = connection.receive(ProduceResponse, 9)
        assert response.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("size", [-1, -(2**31), SOCKET_REQUEST_MAX_BYTES + 1, 2**31 - 1])
def test_impossible_size_ends_the_connection(broker: Broker, size: int) -> None:
    """A negative length or one above socket.request.max.bytes is answered by nothing else."""
    with Wire(broker.bootstrap) as connection:
        round_trip(connection)
        connection.send(struct.pack(">i", size))
        connection.assert_closed()


@pytest.mark.parametrize(
    "payload",
    [
        b"\0",
        b"\0\x03\0",
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, 100) + b"short",
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, -1) + struct.pack(">i", 2**31 - 1),
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, -1) + struct.pack(">ih", 1, 30_000),
        struct.pack(">hhih", ApiKey.METADATA, 9, 1, -1) + b"\0\xff\xff\xff\xff\x0f",
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, -1),
        struct.pack(">hhih", 999, 0, 1, -1),
        struct.pack(">hhih", -1, 0, 1, -1),
        struct.pack(">hhih", ApiKey.METADATA, 99, 1, -1),
        struct.pack(">hhih", ApiKey.METADATA, -1, 1, -1),
    ],
    ids=[
        "one byte",
        "half a header",
        "client id behind the end",
        "2^31-1 topics",
        "topic name behind the end",
        "2^32-2 topics, compact",
        "no body",
        "unknown api",
        "negative api",
        "version too new",
        "negative version",
    ],
)
def test_unreadable_request_ends_the_connection(broker: Broker, payload: bytes) -> None:
    """There is no response to say it with; the broker closes, and serves everybody else."""
    with Wire(broker.bootstrap) as connection, Wire(broker.bootstrap) as other:
        connection.send(wire.sized(payload))
        connection.assert_closed()
        round_trip(other)


def test_requests_before_an_unreadable_one_are_answered(broker: Broker, topic: str) -> None:
    """What was sound is answered before the connection ends."""
    with Wire(broker.bootstrap) as connection:
        connection.send(wire.frame(wire.metadata(topic), 9))
        assert connection.receive(MetadataResponse, 9).topics[0].error_code == 0
        connection.send(wire.sized(struct.pack(">hhih", 999, 0, 1, -1)))
        connection.assert_closed()


def test_downgrade_dance(broker: Broker) -> None:
    """A version of ApiVersions from the future is answered in version 0 with what we know.

    Its body is not looked at. The client asks again on the same connection (KIP-511).
    """
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, 127, 7, 4) + b"wire"
    with Wire(broker.bootstrap) as connection:
        connection.send(wire.sized(header + b"\0\xff\xfenot what version 127 looks like"))
        refused = connection.receive(ApiVersionsResponse, 0, 7)
        assert refused.error_code == UNSUPPORTED_VERSION
        (known,) = refused.api_keys
        assert known.api_key == ApiKey.API_VERSIONS
        assert known.min_version == 0
        assert known.max_version >= 3
        request = ApiVersionsRequest(client_software_name="wire", client_software_version="1")
        answer = connection.ask(request, ApiVersionsResponse, min(known.max_version, 4))
        assert answer.error_code == 0
        assert {entry.api_key for entry in answer.api_keys} >= {0, 1, 2, 3, 18}


@pytest.mark.parametrize(
    ("name", "version"), [("", "1"), ("wire", ""), ("-wire", "1"), ("wi re", "1"), ("wire", "1/2")]
)
def test_client_software_names(broker: Broker, name: str, version: str) -> None:
    """Name and version of the client's software must look like names (KIP-511)."""
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    with Wire(broker.bootstrap) as connection:
        answer = connection.ask(request, ApiVersionsResponse, 3)
        assert answer.error_code == INVALID_REQUEST


def test_null_client_id(broker: Broker) -> None:
    """A client need not say who it is."""
    header = RequestHeader(ApiKey.METADATA, 9, 5, None)
    body = codec.encode(MetadataRequest(topics=[]), 9)
    with Wire(broker.bootstrap) as connection:
        connection.send(wire.sized(encode_request_header(header) + body))
        assert connection.receive(MetadataResponse, 9, 5).brokers[0].node_id == 0
