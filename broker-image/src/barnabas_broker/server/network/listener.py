"""Listening sockets and the sessions that came in through them.

Accepting is done here rather than by asyncio's server, which can neither leave newcomers in the
operating system's queue while the broker is full nor make room for another broker.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.cluster.image import Endpoint
from barnabas_broker.server.network.half_close import departed
from barnabas_broker.server.network.session import Session
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_broker.server.transport.counters import Cause
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.listeners import Listener as Address
from barnabas_kafka.settings.listeners import SecurityProtocol

OS_BUFFER = -1
"""The value of a socket buffer setting that leaves the size to the operating system."""

SEND_BUFFER_BYTES: Final = 256 << 10
"""Size of a send buffer without a setting; with Kafka's 100 KiB a client that reads fast empties it
before the broker, which wakes when a third is free, can send more. Not left to the
kernel either: a client that does not read could have it hold megabytes, and BBR paces what lies
there at a cost above the gain."""

ACCEPTS_AT_ONCE: Final = 32
"""Connections accepted before the event loop goes on with others."""

THROTTLED_MAX: Final = 256
"""Connections that are held up because of quotas of their addresses; others are closed at once."""

RETRY_ACCEPT_S: Final = 0.5
"""How long to leave newcomers alone after the operating system had no descriptor for one."""

TLS_HANDSHAKE_TIMEOUT_S: Final = 10.0
TLS_SHUTDOWN_TIMEOUT_S: Final = 1.0
"""How long a connection may take to agree on TLS, and at its end the client to confirm it."""

_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - these are not bound to here

if TYPE_CHECKING:
    from barnabas_broker.security.client_security import ClientSecurity
    from barnabas_broker.server.network.listener_security import ListenerSecurity
    from barnabas_broker.server.network.socket_server import SocketServer
    from barnabas_broker.server.requests.broker_services import BrokerServices

MakeSession = Callable[["Listener"], Session]

log = logging.getLogger(__name__)


class Listener:
    """One listening socket. `port` is the bound port, also where 0 was asked for."""

    def __init__(
        self,
        address: Address,
        settings: BrokerSettings,
        sock: socket.socket,
        security: "ListenerSecurity | None" = None,
    ) -> None:
        self.name = address.name
        self.security = security
        self.port: int = sock.getsockname()[1]
        self.address = replace(address, port=self.port)
        self._settings = settings
        self._socket = sock
        self.sessions: set[Session] = set()
        self._unopened: set[Session] = set()
        self._loop: asyncio.AbstractEventLoop
        self._make_session: MakeSession
        self._server: SocketServer
        self._opening: set[asyncio.Task[None]] = set()
        self._throttled: set[socket.socket] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._serving = False
        self._full = False
        self._closing = False

    @classmethod
    def bind(
        cls,
        address: Address,
        settings: BrokerSettings,
        broker: "Callable[[], BrokerServices]",
    ) -> "Listener":
        """Bind and listen, without accepting connections yet; raises StartupError.

        `broker` gives settings and users as they are when a client comes.
        """
        security = _security(address, settings, broker)
        try:
            return cls(address, settings, _bound(address, settings), security)
        except OSError as error:
            raise StartupError(_explain(address, error)) from error

    @classmethod
    def check_ports(cls, settings: BrokerSettings) -> None:
        """Raise StartupError where another program has a port; nothing was created until then."""
        for address in settings.listeners:
            if address.port:
                try:
                    _bound(address, settings).close()
                except OSError as error:
                    raise StartupError(_explain(address, error)) from error

    @property
    def local_endpoint(self) -> Endpoint:
        """The bound address, for connections from this process: independent of DNS."""
        host = self._socket.getsockname()[0]
        host = _LOOPBACK.get(host, host)
        return Endpoint(self.name, host, self.port, self.address.protocol.name)

    @property
    def client_security(self) -> "ClientSecurity | None":
        """How this broker connects to the same listener of others; None for PLAINTEXT."""
        return None if self.security is None else self.security.client

    def serve(self, make_session: MakeSession, server: "SocketServer") -> None:
        """Accept connections from now on."""
        self._loop = asyncio.get_running_loop()
        self._serving = True
        self._make_session = make_session
        self._server = server
        if self.security is not None:
            self.security.start()
        self._socket.listen(self._settings[keys.SOCKET_LISTEN_BACKLOG_SIZE])
        self._accept_again()

    async def close(self) -> None:
        """Close the listener and end every session."""
        self._closing = True
        if self.security is not None:
            self.security.stop()
        self._pause_accepting()
        self._socket.close()
        for sock in self._throttled:
            sock.close()
        for session in list(self.sessions):
            session.close("the broker is shutting down")
        for opening in self._opening:
            opening.cancel()  # Its client may not even have begun to agree on TLS.
        if self._opening:
            await asyncio.wait(self._opening)
        if self.sessions:
            await self._empty.wait()  # Each transport calls connection_lost in the next round.

    def opened(self, session: Session) -> None:
        """A session began."""
        self._unopened.discard(session)
        self.sessions.add(session)
        if self._closing:
            session.close("the broker is shutting down")

    def closed(self, session: Session) -> None:
        """A session ended."""
        if session not in self.sessions:
            return
        self.sessions.discard(session)
        if self._closing and not self.sessions:
            self._empty.set()
        self._server.closed(self.name, session.caller.client_host)

    def make_room(self) -> None:
        """Resume accepting if a connection limit had suspended it."""
        if self._full and not self._closing:
            self._accept_again()

    # Accepting.

    def _accept_again(self) -> None:
        self._full = False
        self._timer = None
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def _pause_accepting(self, for_s: float | None = None) -> None:
        """Leave newcomers to the operating system's queue, for a time or until `make_room`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._serving:
            self._loop.remove_reader(self._socket.fileno())
        if for_s is not None:
            self._timer = self._loop.call_later(for_s, self._accept_again)

    def _accept(self) -> None:
        """Accept waiting connections, a few at a time, so that sessions are served in between."""
        for _ in range(ACCEPTS_AT_ONCE):
            now = self._loop.time()
            wait_s = self._server.wait_s(self.name, now)
            if wait_s > 0:
                self._pause_accepting(wait_s)
                return
            if not self._server.has_room(self.name, now):
                self._full = True
                self._pause_accepting()
                return
            try:
                sock, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._server.cannot_accept(self.name, error, now)
                self._pause_accepting(RETRY_ACCEPT_S)
                return
            self._take_in(sock, str(peer[0]), now)

    def _take_in(self, sock: socket.socket, host: str, now: float) -> None:
        throttle_ms = self._server.throttle_ms(host, now)
        if throttle_ms:
            self._hold_up(sock, throttle_ms)
            return
        if not self._server.accepts(self.name, host, now):
            sock.close()
            return
        sock.setblocking(False)
        task = background().once("accepting a connection", self._open(sock, host))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _hold_up(self, sock: socket.socket, throttle_ms: int) -> None:
        """Leave a connection alone for a time, and then close it: its client waits for as long."""
        if len(self._throttled) >= THROTTLED_MAX:
            sock.close()
            return
        self._throttled.add(sock)

        def end() -> None:
            self._throttled.discard(sock)
            sock.close()

        self._loop.call_later(throttle_ms / 1000, end)

    async def _open(self, sock: socket.socket, host: str) -> None:
        """Make the session of a connection; where that fails, its place is free again."""
        session = self._make_session(self)
        self._unopened.add(session)
        try:
            await self._connect(session, sock)
            return
        except (ssl.SSLError, ConnectionAbortedError) as error:  # The latter: it takes too long.
            self._server.handshake_failed(self.name, host, error, self._loop.time())
        except OSError as error:
            log.debug("%s left before it was served: %s", host, error)
        finally:
            if session in self._unopened:  # Else the call of connection_lost counts it.
                self._unopened.discard(session)
                sock.close()
                self._server.closed(self.name, host)

    async def _connect(self, session: Session, sock: socket.socket) -> None:
        context = None if self.security is None else self.security.context
        if context is None:
            await self._loop.connect_accepted_socket(lambda: session, sock)
            return
        from barnabas_broker.security.tls_alerts import accepted
        from barnabas_broker.server.network.tls_connection import TlsConnection

        accepted.set(sock)  # In the context of this connection's task.
        await self._loop.connect_accepted_socket(
            lambda: TlsConnection(session),
            sock,
            ssl=context,
            ssl_handshake_timeout=TLS_HANDSHAKE_TIMEOUT_S,
            ssl_shutdown_timeout=TLS_SHUTDOWN_TIMEOUT_S,
        )

    # Ending.

    def end_most_idle(self) -> bool:
        """End the session that was silent longest; false where all are being served or none is."""
        idle = [(since, it) for it in self.sessions if (since := it.idle_since) is not None]
        if not idle:
            return False
        _, session = min(idle, key=lambda pair: pair[0])
        session.refuse(Cause.CONNECTION_EVICTED, "a broker needed its place")
        return True

    def close_departed(self, now: float) -> None:
        """End sessions whose clients left while a request of theirs waited; `now` is loop time."""
        for session, unread_bytes in list(departed(self.sessions)):
            session.client_left(unread_bytes, now)

    def close_idle(self, now: float) -> None:
        """End sessions that were silent for `connections.max.idle.ms`; `now` is loop time."""
        idle_ms = self._settings[keys.CONNECTIONS_MAX_IDLE_MS]
        if idle_ms < 0:
            return
        oldest = now - idle_ms / 1000

        def look(session: Session) -> None:
            since = session.idle_since
            if since is not None and since < oldest:
                session.refuse(Cause.IDLE, f"idle for more than {idle_ms} ms")

        each_isolated(list(self.sessions), look, "Closing", name=lambda _: "an idle connection")


def _security(
    address: Address, settings: BrokerSettings, broker: "Callable[[], BrokerServices]"
) -> "ListenerSecurity | None":
    if address.protocol is SecurityProtocol.PLAINTEXT:
        return None
    # Only where it is wanted: a start without security does without its modules.
    from barnabas_broker.server.network.listener_security import ListenerSecurity

    return ListenerSecurity(address, settings, broker)


def _bound(address: Address, settings: BrokerSettings) -> socket.socket:
    # An empty host means every interface; a dual-stack socket then serves IPv4 and IPv6.
    wildcard = address.host in ("", "0.0.0.0")  # noqa: S104 - what the user asked for
    if address.host == "" and socket.has_dualstack_ipv6():
        sock = socket.create_server(
            ("", address.port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=False
        )
    else:
        host = "0.0.0.0" if wildcard else address.host  # noqa: S104
        # As bytes: a name of ASCII needs no codec for names that are not, whose tables are large.
        name = host.encode() if host.isascii() else host
        found = socket.getaddrinfo(name, address.port, type=socket.SOCK_STREAM)
        sock = socket.create_server(found[0][4][:2], family=found[0][0])
    _size_buffers(sock, settings)
    sock.setblocking(False)
    return sock


def _size_buffers(sock: socket.socket, settings: BrokerSettings) -> None:
    """Set what accepted connections inherit; the kernel's own limits are as good as it gets."""
    send, receive = keys.SOCKET_SEND_BUFFER_BYTES, keys.SOCKET_RECEIVE_BUFFER_BYTES
    given = settings.given(send.name)
    sizes = {socket.SO_SNDBUF: settings[send] if given else SEND_BUFFER_BYTES}
    # With Kafka's default a batch of 1 MiB comes in eight reads, each waited for, at twice the CPU.
    # Left alone the kernel sizes a buffer by what its connection moves, up to net.ipv4.tcp_rmem,
    # and never all of them together beyond net.ipv4.tcp_mem.
    if settings.given(receive.name):
        sizes[socket.SO_RCVBUF] = settings[receive]
    for option, size in sizes.items():
        if size != OS_BUFFER:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, option, size)


def _explain(address: Address, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"cannot listen on {address}: port {address.port} is in use by another program"
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {address}: the host name {address.host!r} is not known here"
    return f"cannot listen on {address}: {error.strerror or error}"
