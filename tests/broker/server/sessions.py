"""Sessions of the product on transports of a test, which says what arrives and when.

The dispatcher and the listener are the test's too, so that what is served, and in which order, is
certain; the socket is a real one, of which the test has the other end.
"""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from barnabas_broker.server.network.listener import Listener
from barnabas_broker.server.network.response_coalescing import ResponseCoalescer
from barnabas_broker.server.network.session import Session
from barnabas_broker.server.network.shared import Shared
from barnabas_broker.server.process.cooperative_scheduler import RunQueue
from barnabas_broker.server.requests.dispatch import Dispatcher
from barnabas_broker.server.transport.buffers import BufferPool
from barnabas_broker.server.transport.counters import Counters
from barnabas_broker.server.transport.memory_pool import MemoryPool
from barnabas_broker.server.transport.send_buffers import SendBuffers
from barnabas_broker.server.transport.write_readiness import WriteReadiness

log = logging.getLogger(__name__)


class Transport(asyncio.Transport):
    """The test's end of a connection: what it is told to receive, and whether it may."""

    def __init__(self, name: str) -> None:
        self.socket, self.other = socket.socketpair()
        self.socket.setblocking(False)
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
        self.other.close()


class Places:
    """Stands for the listener."""

    name = "PLAINTEXT"
    security = None

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
class Sessions:
    """All connections of one server, whose dispatcher is `requests`."""

    shared: Shared
    requests: Any
    clients: list[Client] = field(default_factory=list)

    def connect(self, name: str) -> Client:
        """A new connection."""
        client = Client(
            Session(
                cast(Listener, Places()), cast(Dispatcher, cast(Any, self.requests)), self.shared
            ),
            Transport(name),
        )
        client.session.connection_made(client.transport)
        self.clients.append(client)
        return client


@contextmanager
def serving(requests: Any) -> Iterator[Sessions]:
    """Sessions that have `requests` serve what comes; on the running event loop."""
    memory = MemoryPool(BufferPool(), budget=1 << 20)
    with ExitStack() as stack:
        writability = WriteReadiness()
        stack.callback(writability.close)
        sessions = Sessions(
            Shared(
                memory, SendBuffers(), Counters(log), writability, RunQueue(), ResponseCoalescer()
            ),
            requests,
        )
        stack.callback(_end, sessions)
        yield sessions
        assert memory.held == 0


def _end(sessions: Sessions) -> None:
    for client in sessions.clients:
        client.session.connection_lost(None)
        client.transport.release()


def frames(numbers: str) -> bytes:
    """A request for each digit."""
    return b"".join(b"\0\0\0\1" + number.encode() for number in numbers)
