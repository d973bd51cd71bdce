"""The TLS connection of a session, which goes on for a while after its client has left.

A producer that wants no answers may close behind its last request, and what was received whole is
served (`Selector.maybeReadFromClosingChannel` in Apache's broker). On a plain socket the kernel
keeps it while the session waits for something. The TLS layer of the event loop reads on, and ends
the connection as soon as its client did, whatever the session has not been given by then. So this
sits between the two: once the client has left, the session has what the TLS layer still holds,
as fast as it takes it, and no answer goes anywhere. Then, or after `LAST_REQUESTS_S`, it ends.

Where an answer cannot be sent, as its client has closed and not only its own half, what the kernel
still holds of it is not served: Apache's broker gives it up, too, after a send that failed
(`Selector.close` with `NOTIFY_ONLY`).
"""

import asyncio
import ssl
from typing import Any, Final, cast

from barnabas_broker.invariants import violated
from barnabas_broker.server.network.session import Session
from barnabas_broker.server.network.shared import LAST_REQUESTS_S

READ_BYTES: Final = 256 << 10
"""How much is taken from the TLS layer at once; it holds a few times that at most."""


class TlsConnection(asyncio.BufferedProtocol):
    """What the event loop takes for the protocol, and the session for the transport."""

    def __init__(self, session: Session) -> None:
        self._session: Final = session
        self._loop: Final = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._paused = False  # The session does not want to read.
        self._closing = False  # The session has ended the connection.
        self._left = False  # The client has left: nothing more comes.
        self._leaving = False  # Draining into the session.
        self._rest = memoryview(b"")  # What had come by then, and the session has not got.
        self._lost = False  # The event loop is done with the connection.
        self._over = False  # connection_lost was called.
        self._deadline: asyncio.TimerHandle | None = None

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._session.connection_made(cast(asyncio.Transport, self))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._session.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._session.buffer_updated(nbytes)

    def eof_received(self) -> None:
        self._client_left(None)

    def pause_writing(self) -> None:
        self._session.pause_writing()

    def resume_writing(self) -> None:
        self._session.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._client_left(exc)
        self._end_if_done(exc)

    # Called by the session.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """That of the transport, and `unread_bytes`: those that the TLS layer holds."""
        if name == "socket" and self._left:
            return default  # Its descriptor may be another connection's by now.
        if name == "unread_bytes":
            if self._paused:
                self._take_rest()
            return len(self._rest)
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Whether the session has ended the connection, or may no longer go on."""
        return self._closing or self._over

    def pause_reading(self) -> None:
        """Have nothing more received for now."""
        self._paused = True
        if not self._left:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on receiving."""
        self._paused = False
        if self._left or self._rest:
            self._loop.call_soon(self._feed)
        else:
            self._transport.resume_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send; nothing once the connection ends, which the TLS layer would warn of."""
        if not (self._left or self._closing):
            self._transport.write(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """As of any transport."""
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """As of any transport."""
        return 0 if self._left else self._transport.get_write_buffer_size()

    def close(self) -> None:
        """End the connection behind what was written."""
        self._closing = True
        self._transport.close()
        self._loop.call_soon(self._end_if_done)

    def abort(self) -> None:
        """End the connection at once."""
        self._closing = True
        if not self._leaving:  # Else the TLS layer says good-bye.
            self._transport.abort()
        self._loop.call_soon(self._end_if_done)

    # The end.

    def _client_left(self, exc: Exception | None) -> None:
        """Have the session served what has come; its answers go nowhere."""
        if self._left:
            return
        self._left = True
        if self._closing:
            return
        self._take_rest()
        self._deadline = self._loop.call_later(LAST_REQUESTS_S, self.abort)
        self._leaving = True
        self._session.client_left(0, self._loop.time())
        self._leaving = False
        self._session.resume_writing()
        self._feed()

    def _take_rest(self) -> None:
        """Take what the TLS layer has received and not given to the session."""
        received = bytearray(self._rest)
        try:
            while data := self._transport.get_extra_info("ssl_object").read(READ_BYTES):
                received += data
        except (ssl.SSLError, ValueError):
            pass  # That is all there is, or all that is whole.
        self._rest = memoryview(bytes(received))

    def _feed(self) -> None:
        """Give the session what is left, as far as it reads."""
        while self._rest and not (self._paused or self._closing):
            buffer = self._session.get_buffer(-1)
            size = min(len(buffer), len(self._rest))
            assert size, violated("a session that reads has room")
            buffer[:size] = self._rest[:size]
            self._rest = self._rest[size:]
            self._session.buffer_updated(size)
        if not (self._left or self._paused or self._closing):
            self._transport.resume_reading()
        self._end_if_done()

    def _end_if_done(self, exc: Exception | None = None) -> None:
        """Call connection_lost on the session once the connection is lost and all was served."""
        is_served = not (self._rest or self._paused)
        if not self._lost or self._over or not (self._closing or is_served):
            return
        self._over = True
        if self._deadline is not None:
            self._deadline.cancel()
        self._session.connection_lost(exc)
