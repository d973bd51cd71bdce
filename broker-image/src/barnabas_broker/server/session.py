"""One client connection: bytes in, requests dispatched in order, responses out in order.

A session serves one request at a time, as Apache's broker does (it mutes the channel): responses
leave in request order without any bookkeeping, and a client that pipelines behind a long poll
waits for it. Responses to requests that arrived in one read leave in one send.

States of a session, told by two attributes:

reading   `_waiting_for` is None and nothing waits to be sent: frames are served as they arrive.
waiting   a handler returned a future, or the peer reads slower than we send: reading is paused
          and bytes already received are kept in `_kept` until the future is done and all is sent.

The buffer that a request was decoded from is valid only while its handler runs: a handler that
waits must not keep slices of it.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas_broker.server.buffers import BufferPool
from barnabas_broker.server.dispatch import Dispatcher, Reply
from barnabas_broker.server.handler import UnanswerableError
from barnabas_broker.server.outbound import Item, Outbound
from barnabas_kafka.protocol.codec import DecodeError

if TYPE_CHECKING:
    from barnabas_broker.server.listener import Listener

log = logging.getLogger(__name__)

SIZE_BYTES: Final = 4


class Session(asyncio.BufferedProtocol):
    """The connection of one client on one listener."""

    __slots__ = (
        "_dispatcher",
        "_filled",
        "_kept",
        "_listener",
        "_loop",
        "_needed",
        "_out",
        "_outbound",
        "_paused",
        "_pool",
        "_transport",
        "_waiting_for",
        "active_at",
        "caller",
    )

    def __init__(self, listener: "Listener", dispatcher: Dispatcher, pool: BufferPool) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._dispatcher = dispatcher
        self._pool = pool
        self._kept: bytearray | None = None  # Bytes not served yet: `_kept[:_filled]`.
        self._filled = 0
        self._needed = 0  # Bytes `_kept` must hold before there is anything to serve.
        self._waiting_for: asyncio.Future[Any] | None = None
        self._paused = False
        self._out: list[Item] = []
        self.active_at = self._loop.time()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        fd = transport.get_extra_info("socket").fileno()
        self._outbound = Outbound(self._loop, fd, on_drained=self._resume, on_broken=self._broken)
        peer = transport.get_extra_info("peername")
        self.caller = self._dispatcher.caller(self._listener.name, str(peer[0]) if peer else "?")
        self._listener.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        kept = self._kept
        if kept is None:
            return self._pool.scratch
        if self._filled == len(kept):
            kept = self._keep(memoryview(kept)[: self._filled])
        return memoryview(kept)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self.active_at = self._loop.time()
        if self._kept is None:
            self._serve_frames(self._pool.scratch[:nbytes])
            return
        self._filled += nbytes
        if self._filled >= self._needed:
            self._serve_frames(memoryview(self._kept)[: self._filled])

    def connection_lost(self, exc: Exception | None) -> None:
        self._outbound.close()
        if self._waiting_for is not None:
            self._waiting_for.cancel()
            self._waiting_for = None
        self._release()
        self._listener.closed(self)

    # Called by the listener.

    @property
    def idle_since(self) -> float | None:
        """Loop time of the last byte from the client; None while we owe it a response."""
        return None if self._paused else self.active_at

    def close(self, reason: str) -> None:
        """Drop the connection at once."""
        log.debug("closing %s: %s", self.caller.client_host, reason)
        self._transport.abort()

    # Frames.

    def _serve_frames(self, view: memoryview) -> None:
        """Serve the whole frames in `view` and keep the rest."""
        position, end = 0, len(view)
        largest = self._dispatcher.request_bytes_max
        while end - position >= SIZE_BYTES and not self._transport.is_closing():
            size = int.from_bytes(view[position : position + SIZE_BYTES], "big", signed=True)
            if not 0 < size <= largest:
                log.warning(
                    "closing the connection of %s: it announced a request of %d bytes, "
                    "socket.request.max.bytes is %d",
                    self.caller.client_host,
                    size,
                    largest,
                )
                self._transport.abort()
                return
            start = position + SIZE_BYTES
            if end - start < size:
                break
            position = start + size
            self._serve(view[start:position])
            if self._is_blocked():
                break
        self._flush()
        if self._transport.is_closing():
            return
        if position < end:
            self._keep(view[position:])
        else:
            self._release()
        if self._is_blocked():
            self._pause()

    def _keep(self, rest: memoryview) -> bytearray:
        """Move bytes that cannot be served yet to a buffer with room for more of their frame."""
        self._needed = SIZE_BYTES
        if len(rest) >= SIZE_BYTES:
            self._needed += int.from_bytes(rest[:SIZE_BYTES], "big")
        kept = self._pool.take(len(rest), frame_bytes=self._needed)
        kept[: len(rest)] = rest
        self._release()
        self._kept, self._filled = kept, len(rest)
        return kept

    def _release(self) -> None:
        if self._kept is not None:
            self._pool.give_back(self._kept)
            self._kept = None
            self._filled = 0

    def _serve(self, frame: memoryview) -> None:
        """Serve one request; its response is in `_out` afterwards, or awaited."""
        try:
            reply = self._dispatcher.serve(frame, self.caller)
        except (DecodeError, UnanswerableError) as error:
            self._flush()
            log.warning("closing the connection of %s: %s", self.caller.client_host, error)
            self._close_when_sent()
            return
        if isinstance(reply, list):
            self._out.extend(reply)
            if len(reply) > 1:  # It carries slices of files: learn now whether they can leave.
                self._flush()
        elif reply is not None:
            self._wait_for(reply)

    def _wait_for(self, reply: Reply) -> None:
        self._waiting_for = reply.future
        reply.future.add_done_callback(partial(self._answered, reply))

    def _answered(self, reply: Reply, future: "asyncio.Future[Any]") -> None:
        if future.cancelled() or self._transport.is_closing():
            return
        self._waiting_for = None
        try:
            self._out.extend(self._dispatcher.encode(reply, future))
        except UnanswerableError as error:
            log.warning("closing the connection of %s: %s", self.caller.client_host, error)
            self._close_when_sent()
            return
        self._flush()
        self._resume()

    # Flow.

    def _flush(self) -> None:
        if self._out:
            self._outbound.send(self._out)
            self._out = []

    def _is_blocked(self) -> bool:
        """Whether the next request must wait: for an answer still to come, or for the peer."""
        return self._waiting_for is not None or self._outbound.waiting

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        """Go on after a wait: first with what was received meanwhile, then with the socket."""
        if self._is_blocked() or self._transport.is_closing():
            return
        if self._kept is not None and self._filled >= self._needed:
            self._serve_frames(memoryview(self._kept)[: self._filled])
            if self._is_blocked():
                return
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self.active_at = self._loop.time()
            self._transport.resume_reading()

    def _close_when_sent(self) -> None:
        # What is queued for a slow peer is not worth holding a refused connection open for.
        self._transport.close()

    def _broken(self, error: OSError) -> None:
        log.debug("%s is gone: %s", self.caller.client_host, error)
        self._transport.abort()
