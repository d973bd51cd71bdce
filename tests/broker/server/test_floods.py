"""Who sends more than one turn serves, beside others: in which order requests are served.

The sessions are the product's; the transport, the requests' handler and the clock are the test's,
so that one request is one turn and the order is certain.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server import session
from barnabas_broker.server.buffers import BufferPool
from barnabas_broker.server.counters import Counters
from barnabas_broker.server.dispatch import Caller, Dispatcher
from barnabas_broker.server.listener import Listener
from barnabas_broker.server.memory import FrameMemory
from barnabas_broker.server.output import OutputMemory
from barnabas_broker.server.session import FLOOD_READ_BYTES, Session, Shared
from barnabas_broker.server.turns import Line
from barnabas_broker.server.writability import Writability

log = logging.getLogger(__name__)


class Transport(asyncio.Transport):
    """The test's end of a connection: what it is told to receive, and whether it may."""

    def __init__(self, name: str) -> None:
        self.socket, self._other = socket.socketpair()
        super().__init__({"socket": self.socket, "peername": (name, 1)})
        self.reading = True
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.closed = True

    def release(self) -> None:
        """Close the sockets."""
        self.socket.close()
        self._other.close()


class Requests:
    """Stands for the dispatcher: writes down what is served, which takes all of a turn."""

    request_bytes_max = 1000

    def __init__(self) -> None:
        self.now = 0.0
        self.turn_s = session.TURN_S
        self.served: list[str] = []
        self.tried = 0

    def caller(self, listener: str, client_host: str) -> Caller:
        return Caller(listener, client_host, ANONYMOUS)

    def serve_run(self, received: memoryview, position: int, caller: Caller) -> None:
        """Nothing is served together."""
        self.tried += 1

    def serve(self, frame: memoryview, caller: Caller) -> None:
        self.now += self.turn_s
        self.served.append(caller.client_host + bytes(frame).decode())


class Places:
    """Stands for the listener."""

    name = "PLAINTEXT"

    def opened(self, session: Session) -> None:
        """Nothing to count."""

    def closed(self, session: Session) -> None:
        """Nothing to count."""


@dataclass(frozen=True)
class Client:
    """One connection."""

    session: Session
    transport: Transport

    def send(self, numbers: str, *, left_out: int = 0) -> None:
        """Have a request for each digit arrive in one read, but for the last bytes."""
        self.arrive(frames(numbers)[: -left_out or None])

    def arrive(self, data: bytes) -> None:
        """Have bytes arrive in one read."""
        assert self.transport.reading
        buffer = self.session.get_buffer(-1)
        buffer[: len(data)] = data
        self.session.buffer_updated(len(data))


@dataclass(frozen=True)
class Server:
    """What sessions share."""

    shared: Shared
    requests: Requests

    def connect(self, name: str) -> Client:
        """A new connection."""
        client = Client(
            Session(
                cast(Listener, Places()), cast(Dispatcher, cast(Any, self.requests)), self.shared
            ),
            Transport(name),
        )
        client.session.connection_made(client.transport)
        return client

    async def settle(self) -> list[str]:
        """Let the loop go round until nobody waits for a turn; what was served meanwhile."""
        before = len(self.requests.served)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not self.shared.line._waiting
        return self.requests.served[before:]


def frames(numbers: str) -> bytes:
    """A request for each digit."""
    return b"".join(b"\0\0\0\1" + number.encode() for number in numbers)


Story = Callable[[Server, Client, Client], Awaitable[None]]


def play(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a story of two clients, `a` and `b`."""

    async def run() -> None:
        requests = Requests()
        monkeypatch.setattr(session, "monotonic", lambda: requests.now)
        memory = FrameMemory(BufferPool(), budget=1 << 20)
        writability = Writability()
        shared = Shared(memory, OutputMemory(), Counters(log), writability, Line())
        server = Server(shared, requests)
        clients = [server.connect(name) for name in "ab"]
        try:
            await story(server, *clients)
            assert memory.held == 0
        finally:
            for client in clients:
                client.session.connection_lost(None)
                client.transport.release()
            writability.close()

    asyncio.run(run())


def test_the_next_flood_stands_behind_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has flooded has no turn at once when more of it comes, but one in line."""

    async def story(server: Server, a: Client, b: Client) -> None:
        a.send("123")
        assert server.requests.served == ["a1"]
        assert await server.settle() == ["a2", "a3"]
        b.send("123")
        assert server.requests.served[3:] == ["b1"]
        a.send("456")
        assert server.requests.served[4:] == []
        assert not a.transport.reading
        assert await server.settle() == ["b2", "a4", "b3", "a5", "a6"]
        assert a.transport.reading

    play(story, monkeypatch)


def test_who_no_longer_floods_is_served_at_once_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one turn serves is no flood; the read after it is as anybody's."""

    async def story(server: Server, a: Client, b: Client) -> None:
        a.send("12")
        await server.settle()
        a.send("3")
        assert server.requests.served == ["a1", "a2"]
        assert await server.settle() == ["a3"]
        a.send("4")
        assert server.requests.served[3:] == ["a4"]
        assert await server.settle() == []

    play(story, monkeypatch)


def test_what_completes_a_request_says_nothing_of_floods(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood is cut anywhere: the rest of one request is received alone, and served at once."""

    async def story(server: Server, a: Client, b: Client) -> None:
        a.send("123", left_out=1)
        assert await server.settle() == ["a2"]
        assert len(a.session.get_buffer(-1)) == 1
        a.arrive(b"3")
        assert server.requests.served[2:] == ["a3"]
        assert len(a.session.get_buffer(-1)) == FLOOD_READ_BYTES
        a.send("45")
        assert server.requests.served[3:] == []
        assert await server.settle() == ["a4", "a5"]

    play(story, monkeypatch)


def test_a_piece_of_a_request_waits_for_the_rest_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to serve, and no turn to wait for."""

    async def story(server: Server, a: Client, b: Client) -> None:
        a.send("12")
        await server.settle()
        a.send("3", left_out=1)
        assert a.transport.reading
        assert await server.settle() == []
        a.arrive(b"3")
        assert server.requests.served == ["a1", "a2", "a3"]

    play(story, monkeypatch)


def test_an_impossible_size_ends_the_connection_in_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After what was sound before it."""

    async def story(server: Server, a: Client, b: Client) -> None:
        a.send("12")
        await server.settle()
        a.arrive(frames("3") + (1001).to_bytes(4, "big"))
        assert await server.settle() == ["a3"]
        assert a.transport.closed
        a.session.connection_lost(None)

    play(story, monkeypatch)


def test_who_leaves_in_line_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """And who stands behind it is served."""

    async def story(server: Server, a: Client, b: Client) -> None:
        a.send("12")
        await server.settle()
        a.send("345")
        b.send("12")
        a.transport.abort()
        a.session.connection_lost(None)
        assert await server.settle() == ["b2"]

    play(story, monkeypatch)


def test_what_does_not_go_together_is_seldom_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """To try costs something, and what a client sends seldom changes in kind."""

    async def story(server: Server, a: Client, b: Client) -> None:
        server.requests.turn_s = 0
        a.send("1" * (session.APART_REQUESTS + 2))
        assert server.requests.tried == 1
        a.send("1")
        assert server.requests.tried == 1
        a.send("11")
        assert server.requests.tried == 2
        b.send("11")
        assert server.requests.tried == 3

    play(story, monkeypatch)
