"""Listening sockets and the sessions that came in through them."""

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from barnabas_broker.server.session import Session
from barnabas_broker.server.startup import StartupError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.listeners import Listener as Address

OS_BUFFER = -1
"""The value of a socket buffer setting that leaves the size to the operating system."""

MakeSession = Callable[["Listener"], Session]


class Listener:
    """One listening socket. `port` is the bound port, also where 0 was asked for."""

    def __init__(self, address: Address, settings: BrokerSettings, sock: socket.socket) -> None:
        self.name = address.name
        self.port: int = sock.getsockname()[1]
        self.address = replace(address, port=self.port)
        self._settings = settings
        self._socket = sock
        self._sessions: set[Session] = set()
        self._server: asyncio.Server | None = None

    @classmethod
    def bind(cls, address: Address, settings: BrokerSettings) -> "Listener":
        """Take the address, without accepting anybody yet; raises StartupError."""
        try:
            return cls(address, settings, _bound(address, settings))
        except OSError as error:
            raise StartupError(_explain(address, error)) from error

    async def serve(self, make_session: MakeSession) -> None:
        """Accept connections from now on."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: make_session(self),
            sock=self._socket,
            backlog=self._settings[keys.SOCKET_LISTEN_BACKLOG_SIZE],
        )

    async def close(self) -> None:
        """Accept nobody any more and end every session."""
        if self._server is None:
            self._socket.close()
            return
        self._server.close()
        for session in list(self._sessions):
            session.close("the broker is shutting down")
        await self._server.wait_closed()

    def opened(self, session: Session) -> None:
        """A session began."""
        self._sessions.add(session)

    def closed(self, session: Session) -> None:
        """A session ended."""
        self._sessions.discard(session)

    def close_idle(self, now: float) -> None:
        """End sessions that were silent for `connections.max.idle.ms`; `now` is loop time."""
        idle_ms = self._settings[keys.CONNECTIONS_MAX_IDLE_MS]
        if idle_ms < 0:
            return
        oldest = now - idle_ms / 1000
        for session in list(self._sessions):
            since = session.idle_since
            if since is not None and since < oldest:
                session.close(f"idle for more than {idle_ms} ms")


def _bound(address: Address, settings: BrokerSettings) -> socket.socket:
    # An empty host means every interface; a dual-stack socket then serves IPv4 and IPv6.
    wildcard = address.host in ("", "0.0.0.0")  # noqa: S104 - what the user asked for
    if address.host == "" and socket.has_dualstack_ipv6():
        sock = socket.create_server(
            ("", address.port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=False
        )
    else:
        host = "0.0.0.0" if wildcard else address.host  # noqa: S104
        found = socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM)
        sock = socket.create_server(found[0][4][:2], family=found[0][0])
    # Accepted connections inherit these from the listening socket.
    for option, key in (
        (socket.SO_SNDBUF, keys.SOCKET_SEND_BUFFER_BYTES),
        (socket.SO_RCVBUF, keys.SOCKET_RECEIVE_BUFFER_BYTES),
    ):
        size = settings[key]
        if size != OS_BUFFER:
            with suppress(OSError):  # The kernel's own limit is as good as it gets.
                sock.setsockopt(socket.SOL_SOCKET, option, size)
    sock.setblocking(False)
    return sock


def _explain(address: Address, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"cannot listen on {address}: port {address.port} is in use by another program"
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {address}: the host name {address.host!r} is not known here"
    return f"cannot listen on {address}: {error.strerror or error}"
