"""What comes on the port of a listener with TLS and is no TLS, breaks off, or follows a handshake.

Input: a byte that says what comes first, then bytes as they are sent. Nothing of them is served:
only what was encrypted is. The connection ends, its place in the limits and its memory are free
again, and the client gets nothing but TLS records.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from barnabas_broker.security.development_pki import Authority
from barnabas_broker.security.listener_tls import listener_tls
from barnabas_broker.security.principals import ANONYMOUS, Principal
from barnabas_broker.server.network import socket_server
from barnabas_broker.server.network.listener import Listener
from barnabas_broker.server.network.listener_security import ListenerSecurity
from barnabas_broker.server.network.session import Session
from barnabas_broker.server.network.socket_server import SocketServer
from barnabas_broker.server.node.lifecycle import loop_factory
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_broker.server.requests.dispatch import Caller, Dispatcher
from barnabas_kafka.protocol.frames import frame
from barnabas_kafka.settings.broker import BrokerSettings
from fuzz.oracle import promise

NOTHING, HELLO, HELLO_1_2, HANDSHAKE, HANDSHAKE_1_2, REQUEST = range(6)
"""What comes before the bytes of the input: a client's first flight, a whole handshake, a sound
request behind one. Where no version is named it is TLS 1.3."""
RECORD_TYPES: Final = range(20, 24)
SOUND: Final = b"a sound request"
_ENDS_WITHIN_S: Final = 5.0


class _Security:
    """What a listener asks of its security."""

    sasl = None
    client = None

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context

    def start(self) -> None:
        """Nothing is renewed."""

    def stop(self) -> None:
        """Nothing is renewed."""

    def check_resumed(self, tls: ssl.SSLObject | None) -> None:
        """No client has a certificate."""

    def certificate_principal(self, tls: ssl.SSLObject | None) -> Principal:
        """Nobody in particular."""
        return ANONYMOUS


class _Dispatcher:
    """Remembers the frames and answers each with itself."""

    request_bytes_max = 10_000

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def caller(self, listener: str, host: str) -> Caller:
        """Whoever it is."""
        return Caller(listener, host, ANONYMOUS)

    def serve_run(self, received: memoryview, position: int, caller: Any) -> None:
        """Nothing is served together."""

    def serve(self, view: memoryview, caller: Any) -> list[bytes]:
        """Answer one frame."""
        self.frames.append(bytes(view))
        return [bytes(view)]


class _Port:
    """A listener with TLS on loopback, on a loop that runs while an input is judged."""

    def __init__(self) -> None:
        factory = loop_factory() or asyncio.new_event_loop
        self.loop: Final = factory()
        self.complaints: list[Any] = []
        self.loop.set_exception_handler(lambda _, context: self.complaints.append(context))
        self.dispatcher: Final = _Dispatcher()
        with tempfile.TemporaryDirectory(prefix="fuzz-tls-") as directory:
            authority = Authority.init(Path(directory), "fuzz")
            file = authority.issue("broker", ["127.0.0.1"], days=1)
            settings = BrokerSettings.from_mapping(
                {**_SETTINGS, "ssl.keystore.location": str(file)}
            )
            context = listener_tls(settings, "TLS").context
        sock = socket.create_server(("127.0.0.1", 0))
        sock.setblocking(False)
        security = cast(ListenerSecurity, _Security(context))
        self.listener: Final = Listener(settings.listeners[0], settings, sock, security)
        socket_server.log.setLevel(logging.CRITICAL)
        self.loop.run_until_complete(self._serve(settings))

    async def _serve(self, settings: BrokerSettings) -> None:
        self.server = SocketServer(settings, monotonic_ms=lambda: 0)
        self.server.listeners.append(self.listener)
        self.shared = self.server.shared
        dispatcher = cast(Dispatcher, self.dispatcher)
        self.listener.serve(lambda to: Session(to, dispatcher, self.shared), self.server)
        self.background = background()

    def judge(self, first: int, rest: bytes) -> None:
        """Send an input on a new connection, and look at what came of it."""
        self.dispatcher.frames.clear()
        answer = self.loop.run_until_complete(self._converse(first, rest))
        promise(not self.complaints, "an error that nothing expects", self.complaints)
        promise(not self.background.failures, "a task failed", self.background.failures)
        served = [SOUND] if first == REQUEST else []
        promise(self.dispatcher.frames == served, "served", self.dispatcher.frames)
        promise(self.shared.memory.held == 0, "memory is not given back", self.shared.memory.held)
        _check_records(answer)

    async def _converse(self, first: int, rest: bytes) -> bytes:
        """Send it all and close that half; returns what came, when the connection has ended."""
        with socket.socket() as sock:
            sock.setblocking(False)
            await self.loop.sock_connect(sock, ("127.0.0.1", self.listener.port))
            client = _Client(self.loop, sock)
            try:
                async with asyncio.timeout(_ENDS_WITHIN_S):
                    with suppress(ConnectionError):  # The broker may have had enough before.
                        await client.begin(first)
                        await self.loop.sock_sendall(sock, rest)
                        sock.shutdown(socket.SHUT_WR)
                    with suppress(OSError):
                        await client.receive_all()
                    # A listener has no event for that.
                    while not self._is_free():  # noqa: ASYNC110
                        await asyncio.sleep(0.001)
            except TimeoutError:
                promise(False, "the connection does not end")
        return client.received

    def _is_free(self) -> bool:
        listener = self.listener
        left = listener.sessions, listener._unopened, listener._opening
        return not any(left) and self.server.quotas.total == 0


class _Client:
    """One that speaks TLS as far as it is asked to."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self._loop = loop
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.received = b""

    async def begin(self, first: int) -> None:
        """Send what comes before the bytes of the input."""
        if first == NOTHING:
            return
        context = _client_context(first in (HELLO_1_2, HANDSHAKE_1_2))
        tls = context.wrap_bio(self._incoming, self._outgoing)
        if first in (HELLO, HELLO_1_2):
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
            await self._send()
            return
        await self._until_done(tls.do_handshake)
        if first == REQUEST:
            tls.write(frame(SOUND))
            await self._until_done(lambda: tls.read(4 + len(SOUND)))

    async def receive_all(self) -> None:
        """Until the broker closes."""
        while more := await self._loop.sock_recv(self._socket, 1 << 16):
            self.received += more

    async def _until_done(self, step: Callable[[], object]) -> None:
        while True:
            try:
                step()
            except ssl.SSLWantReadError:
                await self._send()
                more = await self._loop.sock_recv(self._socket, 1 << 16)
                promise(bool(more), "a sound handshake is refused")
                self.received += more
                self._incoming.write(more)
            else:
                await self._send()
                return

    async def _send(self) -> None:
        await self._loop.sock_sendall(self._socket, self._outgoing.read())


def _check_records(answer: bytes) -> None:
    """Whole records of TLS, the last perhaps cut off by a reset."""
    while len(answer) >= 5:
        kind, major = answer[0], answer[1]
        promise(kind in RECORD_TYPES and major == 3, "the answer is no TLS", answer[:5])
        answer = answer[5 + int.from_bytes(answer[3:5]) :]


@cache
def _client_context(old: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    version = ssl.TLSVersion.TLSv1_2 if old else ssl.TLSVersion.TLSv1_3
    context.minimum_version = context.maximum_version = version
    return context


@cache
def _port() -> _Port:
    return _Port()


_SETTINGS: Final = {
    "log.dirs": "/d",
    "broker.id": "1",
    "listeners": "TLS://127.0.0.1:0",
    "listener.security.protocol.map": "TLS:SSL",
    "inter.broker.listener.name": "TLS",
    "ssl.keystore.type": "PEM",
}


def check(data: bytes) -> None:
    """Nothing that is not encrypted is served, and the connection ends."""
    if data:
        _port().judge(data[0] % (REQUEST + 1), data[1:])


def seeds() -> Iterator[bytes]:
    """Requests in plain text, other protocols, records that are none, each behind everything."""
    record = b"\x16\x03\x01\x00\x05hello"
    whole = (
        b"",
        frame(b"\x00\x12\x00\x00\x00\x00\x00\x07\x00\x04test"),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10",  # SSL 2
        record,
        record.replace(b"\x03\x01", b"\x03\x00"),
        record.replace(b"\x03\x01", b"\x05\x05"),
        b"\x16\x03\x03\xff\xff" + bytes(100),
        b"\x15\x03\x03\x00\x02\x01\x00",  # A close_notify that is not encrypted.
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"\x14\x03\x03\x00\x01\x01" * 40,
        b"\x17\x03\x03\x00\x20" + bytes(32),
        b"\x16\x03\x03\x00\x00" * 40,
        _client_hello(),
    )
    for first in range(REQUEST + 1):
        for each in whole:
            yield bytes((first,)) + each


def _client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        _client_context(old=False).wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()
