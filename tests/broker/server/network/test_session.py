"""Connections, seen from the client's end of the socket."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

from barnabas_broker.server.network import network_receive, session
from barnabas_broker.server.network.network_receive import NetworkReceive
from barnabas_broker.server.network.session import Session
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import (
    Wire,
    fetch_request,
    pass_time,
    port_of,
    produce_request,
    running_node,
)

BATCH = build_batch([(1000, b"key", b"value", ())])
VERSIONS = ApiVersionsRequest(client_software_name="wire", client_software_version="1")


def test_a_request_may_arrive_byte_by_byte(wire: Wire, topic: str) -> None:
    """Frames are put together wherever the network cuts them."""
    frame = wire.frame(produce_request(topic, BATCH), 9)
    for position in range(len(frame)):
        wire.socket.sendall(frame[position : position + 1])
    _, response = wire.receive(ProduceResponse, 9)
    assert response.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_two_requests_cut_anywhere(wire: Wire, topic: str, cut: int) -> None:
    """The rest of one frame and the start of the next may come in one segment."""
    frames = wire.frame(VERSIONS, 3) + wire.frame(produce_request(topic, BATCH), 9)
    wire.socket.sendall(frames[:cut])
    wire.socket.sendall(frames[cut:])
    assert wire.receive(ApiVersionsResponse, 3)[0] == 1 + 1  # The topic fixture asked first.
    assert wire.receive(ProduceResponse, 9)[0] == 2 + 1


def test_responses_come_in_request_order_across_a_long_poll(
    node: BrokerServer, wire: Wire, topic: str
) -> None:
    """What is pipelined behind a waiting fetch waits for it, and is not lost (one segment)."""
    frames = (
        wire.frame(VERSIONS, 3)
        + wire.frame(fetch_request([(topic, 0, 0)], max_wait_ms=10_000), 12)
        + wire.frame(VERSIONS, 3)
        + wire.frame(VERSIONS, 3)
    )
    wire.socket.sendall(frames)
    first, _ = wire.receive(ApiVersionsResponse, 3)
    with Wire(port_of(node)) as other:
        assert other.produce(topic, BATCH).error_code == 0
    second, fetched = wire.receive(FetchResponse, 12)
    third, _ = wire.receive(ApiVersionsResponse, 3)
    fourth, _ = wire.receive(ApiVersionsResponse, 3)
    assert [second - first, third - first, fourth - first] == [1, 2, 3]
    assert fetched.responses[0].partitions[0].high_watermark == 1


def test_many_pipelined_requests_are_all_answered(wire: Wire, topic: str) -> None:
    """A full receive buffer of small requests gives as many responses, in order."""
    count = 5000
    wire.socket.sendall(
        b"".join(wire.frame(produce_request(topic, BATCH), 9) for _ in range(count))
    )
    offsets = [
        wire.receive(ProduceResponse, 9)[1].responses[0].partition_responses[0].base_offset
        for _ in range(count)
    ]
    assert offsets == list(range(count))


def test_large_requests_in_pieces_are_all_answered(wire: Wire, topic: str) -> None:
    """Requests larger than one read, cut wherever reads end, are put together one by one."""
    batch = build_batch([(1000, None, bytes(150_000), ())])
    count = 40
    for number in range(count):
        frame = wire.frame(produce_request(topic, batch), 9)
        cut = number * 4_001 % len(frame)
        wire.socket.sendall(frame[:cut])
        wire.socket.sendall(frame[cut:] + wire.frame(VERSIONS, 3))
    for number in range(count):
        response = wire.receive(ProduceResponse, 9)[1]
        assert response.responses[0].partition_responses[0].base_offset == number
        wire.receive(ApiVersionsResponse, 3)


def test_a_slow_reader_gets_everything(wire: Wire, topic: str) -> None:
    """Responses beyond the socket's buffers wait for the peer, who is not read from meanwhile."""
    value = bytes(range(256)) * 2000
    assert wire.produce(topic, build_batch([(1, None, value, ())])).error_code == 0
    asked = 40
    request = fetch_request([(topic, 0, 0)])
    wire.socket.sendall(b"".join(wire.frame(request, 12) for _ in range(asked)))
    for _ in range(asked):
        _, response = wire.receive(FetchResponse, 12)
        records = response.responses[0].partitions[0].records
        assert isinstance(records, memoryview)
        assert value in bytes(records)


@pytest.mark.parametrize("size", [-1, 0, 200_000_000])
def test_an_impossible_size_ends_the_connection(wire: Wire, size: int) -> None:
    """Negative, empty and beyond socket.request.max.bytes: nothing after it can be trusted."""
    wire.socket.sendall(size.to_bytes(4, "big", signed=True))
    assert wire.closed_by_broker()


def test_the_largest_request_is_a_setting(tmp_path: Path) -> None:
    """`socket.request.max.bytes` is the limit, not a constant."""
    with (
        running_node(tmp_path, {"socket.request.max.bytes": "1000"}) as node,
        Wire(port_of(node)) as wire,
    ):
        wire.socket.sendall((1001).to_bytes(4, "big"))
        assert wire.closed_by_broker()


def test_garbage_ends_the_connection_and_nothing_else(node: BrokerServer, wire: Wire) -> None:
    """A body that does not decode closes its own connection; others go on."""
    frame = bytearray(wire.frame(fetch_request([("t", 0, 0)]), 12))
    frame[-20:] = b"\xff" * 20
    wire.socket.sendall(frame)
    assert wire.closed_by_broker()
    with Wire(port_of(node)) as other:
        assert other.ask(VERSIONS, 3).error_code == 0


def test_a_silent_connection_is_ended(tmp_path: Path) -> None:
    """`connections.max.idle.ms` applies to who says nothing, not to who waits for an answer."""
    with (
        running_node(tmp_path, {"connections.max.idle.ms": "300000"}) as node,
        Wire(port_of(node)) as waiting,
        Wire(port_of(node)) as silent,
    ):
        waiting.create_topic("t")
        assert silent.ask(ApiVersionsRequest(), 0).error_code == 0
        waiting.send(fetch_request([("t", 0, 0)], max_wait_ms=900_000), 12)
        pass_time(node, 301)
        assert silent.closed_by_broker()
        pass_time(node, 900)
        assert waiting.receive(FetchResponse, 12)[1].responses[0].partitions[0].error_code == 0


def test_a_client_that_leaves_while_waiting_is_forgotten(node: BrokerServer, topic: str) -> None:
    """A parked fetch goes with its connection once the broker stops."""
    with Wire(port_of(node)) as leaving:
        leaving.send(fetch_request([(topic, 0, 0)], max_wait_ms=500), 12)
    with Wire(port_of(node)) as other:
        assert other.produce(topic, BATCH).base_offset == 0


def test_requests_that_came_together_are_served_in_turns(
    node: BrokerServer, wire: Wire, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With turns of no time one request is a turn, and whatever else the loop has comes between."""
    begun = 0
    original = Session._begin_time_slice

    def begin(self: Session) -> None:
        nonlocal begun
        begun += 1
        original(self)

    monkeypatch.setattr(session, "TIME_SLICE_S", 0.0)
    monkeypatch.setattr(Session, "_begin_time_slice", begin)
    wire.socket.sendall(b"".join(wire.frame(VERSIONS, 3) for _ in range(50)))
    for _ in range(50):
        wire.receive(ApiVersionsResponse, 3)
    assert begun == 49


def test_a_partial_request_is_served_once_complete(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between turns what is left stays where it is; behind the last it waits for more."""
    monkeypatch.setattr(session, "TIME_SLICE_S", 0.0)
    frames = b"".join(wire.frame(VERSIONS, 3) for _ in range(20))
    cut = len(frames) - 10
    for part, answers in ((frames[:cut], 19), (frames[cut:] + frames, 21)):
        wire.socket.sendall(part)
        for _ in range(answers):
            wire.receive(ApiVersionsResponse, 3)


def test_a_large_request_moves_to_larger_buffers_in_turns(
    node: BrokerServer, wire: Wire, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others go on meanwhile; it arrives whole, and leaves nothing behind when it ends early."""
    moves: list[int] = []
    original = NetworkReceive._move

    def move(self: NetworkReceive, larger: bytearray, position: int) -> None:
        moves.append(position)
        original(self, larger, position)

    monkeypatch.setattr(network_receive, "MOVED_AT_ONCE", 1000)
    monkeypatch.setattr(NetworkReceive, "_move", move)
    batch = build_batch([(1000, None, os.urandom(900_000), ())])
    frame = wire.frame(produce_request(topic, batch), 9)
    with Wire(port_of(node)) as leaving, Wire(port_of(node)) as other:
        for each, ends in ((leaving, 300_000), (wire, 5000)):
            each.socket.sendall(frame[:ends])
            other.ask(VERSIONS, 3)
    wire.socket.sendall(frame[5000:])
    wire.receive(ProduceResponse, 9)
    assert max(moves) >= 1000
    assert bytes(wire.fetch(topic).records or b"")[61:] == batch[61:]  # type: ignore[arg-type]


def send_for_ever(wire: Wire, frame: bytes) -> NoReturn:
    """Ask and ask, and read nothing."""
    while True:
        wire.socket.sendall(frame)


def test_a_client_that_does_not_read_is_disconnected_as_idle(tmp_path: Path) -> None:
    """Requests that go on arriving do not count: the responses have not moved."""
    settings = {"connections.max.idle.ms": "500"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        wire.produce("t", build_batch([(1000, None, bytes(900_000), ())]))
        frame = wire.frame(fetch_request([("t", 0, 0)]), 12)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_for_ever(wire, frame)
        with Wire(port_of(node)) as other:
            assert other.fetch("t").error_code == 0
