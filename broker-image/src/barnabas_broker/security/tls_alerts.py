"""TLS of a listener that sends a client the reason why it closes the connection.

A handshake that fails leaves an alert to be sent, such as `certificate_required`. The TLS layers
of asyncio and uvloop drop it with the connection: the client sees one that was closed without a
reason. Here the handshake itself sends it, by `accepted`: the socket of the connection that the
current task accepts.
"""

import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

from barnabas_broker.invariants import violated

accepted: Final[ContextVar[socket.socket]] = ContextVar("accepted")


class _AlertingHandshake(ssl.SSLObject):
    """The server's end of one connection; it knows its socket until the handshake is over."""

    outgoing: ssl.MemoryBIO
    socket: socket.socket | None

    def do_handshake(self) -> None:
        """As of any SSLObject. Where that fails, the alert is sent before the error is raised."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.socket is not None:
                with suppress(OSError):  # The client has left, or reads nothing.
                    self.socket.send(self.outgoing.read())
            self.socket = None
            raise
        self.socket = None


class AlertingContext(ssl.SSLContext):
    """A server's context whose failed handshakes send their alerts."""

    sslobject_class = _AlertingHandshake

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any
    ) -> _AlertingHandshake:
        """As of any context; in memory alone where no socket was accepted."""
        handshake = super().wrap_bio(incoming, outgoing, *args, **kwargs)
        assert isinstance(handshake, _AlertingHandshake), violated("`sslobject_class` is made")
        handshake.outgoing, handshake.socket = outgoing, accepted.get(None)
        return handshake
