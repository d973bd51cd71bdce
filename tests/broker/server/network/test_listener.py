"""How many may connect, seen from outside."""

import errno
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas_broker.server.background import background_tasks
from barnabas_broker.server.network import listener
from barnabas_broker.server.network.listener import SEND_BUFFER_BYTES
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.transport.counters import Cause
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.server.running import Wire, pass_time, port_of, running_node
from tests.broker.server.test_dynamic_settings import alter
from tests.waiting import ANSWER, seconds

VERSIONS = ApiVersionsRequest(client_software_name="wire", client_software_version="1")
#: How long accepting pauses where there are no descriptors.
RETRY_S = 0.05
TWO_LISTENERS = {
    "listeners": "CLIENT://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}


@pytest.fixture(autouse=True)
def fast_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take note of changed settings every 20 ms instead of every second."""
    monkeypatch.setattr(background_tasks, "TICK_MS", 20)


def served(wire: Wire) -> bool:
    """Whether a connection is answered."""
    return bool(wire.ask(VERSIONS, 3).error_code == 0)


def waits(wire: Wire) -> bool:
    """Whether a connection that has asked is not answered, for some time."""
    wire.socket.settimeout(0.2)
    try:
        wire.socket.recv(1)
    except TimeoutError:
        return True
    finally:
        wire.socket.settimeout(seconds(ANSWER))
    return False


def ports(node: BrokerServer) -> dict[str, int]:
    """The port of each listener."""
    return {one.name: one.port for one in node.listeners}


@pytest.mark.parametrize("key", ["max.connections", "listener.name.plaintext.max.connections"])
def test_a_connection_to_a_full_broker_waits(tmp_path: Path, key: str) -> None:
    """Nobody is refused: the next one is served as soon as one leaves, as in Apache's broker."""
    with running_node(tmp_path, {key: "2"}) as node, ExitStack() as stack:
        first, second, third = (
            stack.enter_context(Wire(port_of(node))) for _ in ("first", "second", "third")
        )
        assert served(first)
        assert served(second)
        third.send(VERSIONS, 3)
        assert waits(third)
        first.socket.close()
        assert third.receive_frame()
        assert node.socket_server.counters.totals[Cause.TOO_MANY_CONNECTIONS] >= 1


def test_an_address_with_too_many_is_refused(tmp_path: Path) -> None:
    """At once, by closing; others of its connections go on."""
    with (
        running_node(tmp_path, {"max.connections.per.ip": "1"}) as node,
        Wire(port_of(node)) as first,
    ):
        assert served(first)
        with Wire(port_of(node)) as second:
            assert second.closed_by_broker()
        assert served(first)
        assert node.socket_server.counters.totals[Cause.TOO_MANY_CONNECTIONS_OF_ADDRESS] == 1


def test_a_named_address_has_its_own_number(tmp_path: Path) -> None:
    """`max.connections.per.ip.overrides` goes before `max.connections.per.ip`."""
    settings = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "localhost:2"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        assert served(wire)


def test_limits_change_while_the_broker_runs(tmp_path: Path) -> None:
    """Those who wait for a place get it when there are more."""
    with (
        running_node(tmp_path, {"max.connections": "1"}) as node,
        Wire(port_of(node)) as first,
        Wire(port_of(node)) as second,
    ):
        assert served(first)
        second.send(VERSIONS, 3)
        assert alter(first, "max.connections", "2") == 0
        assert second.receive_frame()


def test_a_broker_gets_the_place_of_an_idle_client(tmp_path: Path) -> None:
    """The client that was silent longest makes room; the one that was not stays."""
    with (
        running_node(tmp_path, {**TWO_LISTENERS, "max.connections": "2"}) as node,
        Wire(ports(node)["CLIENT"]) as idle,
        Wire(ports(node)["CLIENT"]) as active,
    ):
        assert served(idle)
        assert served(active)
        with Wire(ports(node)["BROKERS"]) as broker:
            assert served(broker)
            assert idle.closed_by_broker()
            assert served(active)


def test_connections_beyond_the_rate_come_in_later(tmp_path: Path) -> None:
    """All of them are served in the end."""
    with running_node(tmp_path, {"max.connection.creation.rate": "1"}) as node:
        for _ in range(4):
            with Wire(port_of(node)) as wire:
                wire.send(VERSIONS, 3)
                pass_time(node, 1)
                assert wire.receive(ApiVersionsResponse, 3)[1].error_code == 0
        assert node.socket_server.counters.totals[Cause.CONNECTION_RATE] >= 1


@pytest.fixture
def out_of_descriptors(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """While set, the operating system has no descriptor for a new connection."""
    exhausted = threading.Event()
    accept = socket.socket.accept

    def failing(self: socket.socket) -> tuple[socket.socket, object]:
        if exhausted.is_set():
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(self)

    monkeypatch.setattr(listener, "RETRY_ACCEPT_S", RETRY_S)
    monkeypatch.setattr(socket.socket, "accept", failing)
    return exhausted


def test_without_descriptors_newcomers_wait(
    tmp_path: Path, out_of_descriptors: threading.Event
) -> None:
    """Accepting pauses, without a busy loop, and goes on when there are some again."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as first:
        assert served(first)
        out_of_descriptors.set()
        began_s = time.monotonic()
        with Wire(port_of(node)) as second:
            second.send(VERSIONS, 3)
            assert waits(second)
            assert served(first)
            tried = node.socket_server.counters.totals[Cause.NO_DESCRIPTORS]
            assert 1 <= tried <= 2 + (time.monotonic() - began_s) / RETRY_S
            out_of_descriptors.clear()
            assert second.receive_frame()


def buffer_size(directory: Path, option: int, settings: dict[str, str]) -> int:
    """What the kernel says of a buffer of an accepted connection that has moved a few bytes."""
    with running_node(directory, settings) as node, Wire(port_of(node)) as wire:
        assert served(wire)
        ((session,),) = (one.sessions for one in node.listeners)
        accepted: socket.socket = session._transport.get_extra_info("socket")
        return accepted.getsockopt(socket.SOL_SOCKET, option)


def test_the_kernel_sizes_receive_buffers_by_default(tmp_path: Path) -> None:
    """The default is not imposed: it would have large batches arrive in many pieces."""
    key, option = "socket.receive.buffer.bytes", socket.SO_RCVBUF
    with socket.create_server(("127.0.0.1", 0)) as anybody:
        of_the_kernel = anybody.getsockopt(socket.SOL_SOCKET, option)
    assert buffer_size(tmp_path / "unset", option, {}) == of_the_kernel
    assert buffer_size(tmp_path / "-1", option, {key: "-1"}) == of_the_kernel
    # The kernel doubles what it is asked for, to have room for its own bookkeeping.
    assert buffer_size(tmp_path / "set", option, {key: "20000"}) == 40_000


def test_send_buffers_are_larger_than_the_kernels_default(
    tmp_path: Path,
) -> None:
    """The kernel's own limit may be below ours, and is above the default everywhere."""
    key, option = "socket.send.buffer.bytes", socket.SO_SNDBUF
    with socket.socket() as anybody:
        anybody.setsockopt(socket.SOL_SOCKET, option, SEND_BUFFER_BYTES)
        allowed = anybody.getsockopt(socket.SOL_SOCKET, option)
    assert buffer_size(tmp_path / "unset", option, {}) == allowed > 2 * 102_400
    assert buffer_size(tmp_path / "default", option, {key: "102400"}) == 2 * 102_400
    assert buffer_size(tmp_path / "set", option, {key: "20000"}) == 40_000
