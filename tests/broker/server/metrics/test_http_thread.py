"""Clients of the admin port that are slow, many or no clients of HTTP."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas_broker.server.metrics import http as admin
from barnabas_broker.server.metrics import http_thread
from tests.broker.descriptors import none_left
from tests.broker.server.metrics.test_http import Loop
from tests.waiting import ANSWER, seconds, wait_for


@pytest.fixture
def served() -> Iterator[Loop]:
    """A running admin server."""
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def drippers(served: Loop, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """Clients that have every place, for as long as they like, and never end their headers."""
    monkeypatch.setattr(http_thread, "TIMEOUT_S", seconds(ANSWER))
    address = ("127.0.0.1", served.server.server_port)
    dripping = [
        socket.create_connection(address, timeout=seconds(ANSWER))
        for _ in range(http_thread.PLACES)
    ]
    for each in dripping:
        each.sendall(b"GET /live HTTP/1.1\r\nX-Slow: ")
    yield dripping
    for each in dripping:
        each.close()


def ended(client: socket.socket) -> bool:
    """Whether the server has ended a connection, seen without waiting for it."""
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_drippers_do_not_keep_others_out(served: Loop, drippers: list[socket.socket]) -> None:
    """With all places taken by who never ends a request, a newcomer gets the oldest's."""
    for _ in range(3):
        assert served.get("/live")[:2] == (200, "live\n")
    assert served.get("/metrics")[0] == 200
    assert not ended(drippers[-1])


def test_a_byte_now_and_then_does_not_put_off_the_deadline(
    served: Loop, drippers: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request has one deadline, headers and all: who drips is ended while it drips."""
    monkeypatch.setattr(http_thread, "TIMEOUT_S", 1.0)
    port = served.server.server_port
    with socket.create_connection(("127.0.0.1", port), timeout=seconds(ANSWER)) as dripping:

        def drip() -> bool:
            try:
                dripping.setblocking(True)
                dripping.sendall(b"x")
            except ConnectionError:
                return True
            return ended(dripping)

        wait_for("the end of a dripping client", drip, until=bool)


def test_live_keeps_its_place_while_the_loop_is_busy(
    served: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has asked whether the broker lives is not driven out by those who come later."""
    stuck, go_on = threading.Event(), threading.Event()

    def block() -> None:
        stuck.set()
        go_on.wait(seconds(ANSWER))

    monkeypatch.setattr(admin, "TIMEOUT_S", seconds(ANSWER))
    served.loop.call_soon_threadsafe(block)
    assert stuck.wait(seconds(ANSWER))
    address = ("127.0.0.1", served.server.server_port)
    others: list[socket.socket] = []
    try:
        with socket.create_connection(address, timeout=seconds(ANSWER)) as probe:
            probe.sendall(b"GET /live HTTP/1.1\r\nHost: broker\r\n\r\n")
            wait_for("the probe's place", lambda: len(served.server._urgent_places), until=bool)
            for _ in range(http_thread.PLACES + 1):
                others.append(socket.create_connection(address, timeout=seconds(ANSWER)))
                others[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n")
            wait_for("the end of the first of the others", lambda: ended(others[0]), until=bool)
            go_on.set()
            assert probe.recv(100).startswith(b"HTTP/1.1 200 ")
    finally:
        go_on.set()
        for each in others:
            each.close()


def test_malformed_http_requests_get_an_error(served: Loop) -> None:
    """Garbage, another version, endless headers."""
    address = ("127.0.0.1", served.server.server_port)
    endless = b"GET / HTTP/1.1\r\nX: " + b"x" * (http_thread.HEAD_BYTES_MAX + 1)
    for sent, status in (
        (b"\x16\x03\x01\xff\r\n\r\n", b"400"),
        (b"GET /live\r\n\r\n", b"400"),
        (b"GET /live HTTP/2\r\n\r\n", b"505"),
        (endless, b"431"),
    ):
        with socket.create_connection(address, timeout=seconds(ANSWER)) as client:
            client.sendall(sent)
            assert client.recv(100).split()[1] == status, sent[:20]


def test_without_descriptors_it_waits_and_then_goes_on(served: Loop) -> None:
    """Newcomers stay in the kernel's queue until there is a descriptor for them."""
    with socket.socket() as client:
        client.settimeout(seconds(ANSWER))
        with none_left():
            client.connect(("127.0.0.1", served.server.server_port))
            client.sendall(b"GET /live HTTP/1.1\r\nHost: broker\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")


def test_it_may_be_closed_while_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is told to stop at once ends its admin port as any other does."""
    goes_on, begun, start = threading.Event(), threading.Event(), asyncio.start_server

    async def start_late(*args: Any, **named: Any) -> asyncio.Server:
        begun.set()
        await asyncio.to_thread(goes_on.wait)
        return await start(*args, **named)

    monkeypatch.setattr(asyncio, "start_server", start_late)

    async def answer(_question: http_thread.Question) -> http_thread.Answer:
        raise AssertionError

    server = http_thread.HttpThread(("127.0.0.1", 0), answer, urgent=())
    server.open()
    assert begun.wait(seconds(ANSWER))
    join = server._thread.join

    def joined() -> None:
        goes_on.set()  # What close() asks of the thread is in its queue by now.
        join(seconds(ANSWER))

    monkeypatch.setattr(server._thread, "join", joined)
    server.close()
    assert not server._thread.is_alive()
