"""One client connection: bytes in, requests dispatched in order, responses out in order.

With SASL an authenticator serves in the place of the dispatcher until the client is authenticated
(`sasl_authenticator`); with TLS what is sent goes through the transport (`tls_outbound`).

A session serves one request at a time, as Apache's broker does (it mutes the channel): responses
leave in request order, and a client that pipelines behind a long poll waits for it. Responses to
requests that arrived in one read leave in one send; small ones that can be served together
(`produce_runs`) are one step, and some wait for those of other connections (`response_coalescing`).

States of a session, by two attributes:

reading   `_waiting_for` is None and nothing waits to be sent: frames are served as they arrive.
waiting   a handler returned a future, the peer reads slower than we send, it is queued, it is
          muted, or there is no memory for the rest of its request: reading is paused and bytes
          already received are kept in `_receive` until that has passed. Behind a parked request
          reading is paused only when something comes, which may hurry that request.

A time slice is how long one session may keep the event loop to itself when many requests came at
once. Sessions whose time slice is over share a run queue, of which each iteration of the loop
serves one: a hundred floods make others wait no longer than one does. All sessions share memory of
unfinished requests (`memory_pool`) and of what waits to be sent (`send_buffers`).

What all sessions may take of one iteration is limited, too: the bytes of large requests, and the
time for those that take long (`long_requests`), which then wait in queues of their own.

A handler that waits must not keep slices of the buffer that its request was decoded from.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from struct import Struct
from time import monotonic, perf_counter, perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from barnabas_broker.invariants import violated
from barnabas_broker.security.principals import Principal
from barnabas_broker.server.network.long_requests import FALL, LONG_REQUEST_S, clock_for, next_cost
from barnabas_broker.server.network.network_receive import SIZE_BYTES, NetworkReceive
from barnabas_broker.server.network.shared import (
    FLOOD_READ_BYTES,
    FLUSH_BYTES,
    LARGE_REQUEST_BYTES,
    LAST_REQUESTS_S,
    UNBUDGETED_BYTES,
    Shared,
)
from barnabas_broker.server.process.cooperative_scheduler import RunQueue
from barnabas_broker.server.requests.dispatch import Dispatcher, Reply
from barnabas_broker.server.requests.handler import UnanswerableError
from barnabas_broker.server.requests.pending_responses import PendingResponse
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.server.transport.counters import Cause
from barnabas_broker.server.transport.outbound import Item, Outbound
from barnabas_broker.server.transport.tls_outbound import TlsOutbound
from barnabas_kafka.protocol.codec import DecodeError, EncodeError

if TYPE_CHECKING:
    from barnabas_broker.server.network.listener_security import ListenerSecurity
    from barnabas_broker.server.network.sasl_authenticator import SaslAuthenticator, SaslProvider
    from barnabas_broker.server.process.deferred_responses import DelayedFailure

log = logging.getLogger(__name__)

_SIZE: Final = Struct(">i")

TIME_SLICE_S: Final = 0.0003
"""How long one session serves requests that came together before it yields to others. An iteration
of the event loop costs a thirtieth of that."""

APART_REQUESTS: Final = 100
"""How many requests of a session are served one by one once some could not be served together: to
try costs some microseconds, and what a client sends seldom changes in kind."""


class Acceptor(Protocol):
    """What accepted a session and counts it: its listener."""

    name: str
    security: "ListenerSecurity | None"

    def opened(self, session: "Session", /) -> None: ...
    def closed(self, session: "Session", /) -> None: ...


class Session(asyncio.BufferedProtocol):
    """The connection of one client on one listener."""

    __slots__ = (
        "_apart",
        "_authenticator",
        "_call",
        "_cost",
        "_dispatcher",
        "_floods",
        "_listener",
        "_loop",
        "_memory",
        "_muted",
        "_out",
        "_outbound",
        "_queued",
        "_receive",
        "_shared",
        "_starved",
        "_transport",
        "_waiting_for",
        "active_at",
        "caller",
        "paused",
    )

    def __init__(self, listener: Acceptor, dispatcher: Dispatcher, shared: Shared) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._dispatcher: Dispatcher | SaslAuthenticator = dispatcher
        self._authenticator: SaslAuthenticator | None = None
        self._shared = shared
        self._memory = shared.memory
        self._receive: NetworkReceive | None = None  # Bytes that cannot be served yet.
        self._waiting_for: asyncio.Future[Any] | PendingResponse | None = None
        self._call: RequestContext | None = None  # Of the future that is waited for.
        self.paused = False
        self._muted: asyncio.TimerHandle | None = None  # Its client is beyond a quota.
        self._starved = False  # It needs more memory for its request than there is.
        self._queued = False  # It has requests to serve, and will be called.
        self._floods = False  # What was last received at once took several time slices to serve.
        self._cost = 0.0  # Seconds that its next request is estimated to take.
        self._apart = 0  # So many more requests are served one by one.
        self._out: list[Item] = []
        self.active_at = self._loop.time()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        tls = transport.get_extra_info("ssl_object")
        self._outbound: Outbound | TlsOutbound
        if tls is None:
            self._outbound = Outbound(
                self._loop,
                transport.get_extra_info("socket").fileno(),
                self._shared.writability,
                on_drained=self._drained,
                on_broken=self._broken,
            )
        else:
            self._outbound = TlsOutbound(
                self._loop, self._transport, on_drained=self._drained, on_broken=self._broken
            )
        peer = transport.get_extra_info("peername")
        dispatcher = cast(Dispatcher, self._dispatcher)
        caller = dispatcher.caller(self._listener.name, str(peer[0]) if peer else "?")
        self.caller = replace(caller, throttle=self._mute)
        self._listener.opened(self)
        self._authenticate(dispatcher, tls)

    def get_buffer(self, sizehint: int) -> memoryview:
        receive = self._receive
        if receive is None:
            if self._shared.iteration_bytes.is_over:
                return self._memory.read_into[:UNBUDGETED_BYTES]
            return self._memory.read_into[: FLOOD_READ_BYTES if self._floods else None]
        return receive.room()

    def buffer_updated(self, nbytes: int) -> None:
        self.active_at = self._loop.time()
        receive = self._receive
        if receive is None:
            received = self._memory.read_into[:nbytes]
            if self._waiting_for is not None:
                self._keep(received)
                self._pause()
            elif self._floods:
                self._floods = False
                self._keep_and_queue(received, self._shared.run_queue)
            elif self._cost > LONG_REQUEST_S and self._shared.serving.is_over:
                self._keep_and_queue(received, None)
            elif not self._serve_one(received):
                self._serve_frames(received)
            return
        receive.filled += nbytes
        if self._must_wait(receive, nbytes):
            self._pause()
        elif receive.filled >= receive.needed:
            self._serve_frames(memoryview(receive.buffer)[: receive.filled])
        elif receive.filled == len(receive.buffer):
            receive.grow()

    def _must_wait(self, receive: NetworkReceive, nbytes: int) -> bool:
        """Whether a request that has arrived this far must wait; the session is then queued."""
        shared, is_whole = self._shared, receive.filled >= receive.needed
        if receive.needed > LARGE_REQUEST_BYTES and self._memory.is_shared:
            shared.iteration_bytes.spend(nbytes)
            if not (is_whole or shared.iteration_bytes.is_over):
                return False
        elif not (is_whole and self._cost > LONG_REQUEST_S and shared.serving.is_over):
            return False
        self._join(None if is_whole else shared.receiving)
        return True

    def pause_writing(self) -> None:
        if isinstance(self._outbound, TlsOutbound):
            self._outbound.pause_writing()

    def resume_writing(self) -> None:
        if isinstance(self._outbound, TlsOutbound):
            self._outbound.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._outbound.close()
        if self._authenticator is not None:
            self._authenticator.close()
        self._shared.output.drained(self)
        if self._muted is not None:
            self._muted.cancel()
        if self._waiting_for is not None:
            self._waiting_for.cancel()
            self._waiting_for = self._call = None
        self._release()
        self._listener.closed(self)

    @property
    def idle_since(self) -> float | None:
        """Loop time of the last byte from or to the client; None while we owe it a response."""
        if self._outbound.waiting:
            return self._outbound.moved_at
        if self._waiting_for is not None or (self.paused and self._muted is None):
            return None
        return self.active_at

    @property
    def parked_fd(self) -> int | None:
        """The descriptor of the connection while it waits for an answer or is muted, else None."""
        waits = self._waiting_for is not None or self._muted is not None
        if not waits or self._transport.is_closing():
            return None
        socket = self._transport.get_extra_info("socket")
        return None if socket is None else cast(int, socket.fileno())

    def client_left(self, unread_bytes: int, now: float) -> None:
        """End a parked connection; what its client sent before it left is waited for a while."""
        unread_bytes += self._transport.get_extra_info("unread_bytes", 0)  # Of the TLS layer.
        at_work = self._receive is not None or isinstance(self._waiting_for, asyncio.Task)
        if not (at_work or unread_bytes) or now - self.active_at > LAST_REQUESTS_S:
            self.close("its client has gone")

    def close(self, reason: str) -> None:
        """Drop the connection at once."""
        log.debug("closing %s: %s", self.caller.client_host, reason)
        self._transport.abort()

    def refuse(self, cause: Cause, reason: str) -> None:
        """Drop the connection at once for something its client did; counted and logged."""
        self._complain(cause, reason)
        self._transport.abort()

    # Authentication.

    def _authenticate(self, dispatcher: Dispatcher, tls: ssl.SSLObject | None) -> None:
        """Take the principal of a client certificate, or begin SASL, as the listener requires."""
        security = self._listener.security
        if security is None:
            return
        try:
            security.check_resumed(tls)
            if security.sasl is not None:
                self._authenticator = security.sasl.authenticator(self, dispatcher)
                self._dispatcher = self._authenticator
                return
            principal = security.certificate_principal(tls)
        except ValueError as error:
            self.note_failed_authentication(str(error))
            self._transport.abort()
            return
        except BaseException:  # Any failure: never serve without authentication.
            self._transport.abort()
            raise
        self.caller = replace(self.caller, principal=principal)

    @property
    def sasl_provider(self) -> "SaslProvider | None":
        """How the listener authenticates by SASL at the moment; None without SASL."""
        security = self._listener.security
        return None if security is None else security.sasl

    def authenticate_by(self, authenticator: "SaslAuthenticator") -> None:
        """Serve what comes next by the authenticator: the client authenticates again."""
        self._dispatcher = authenticator

    def authenticated(self, principal: Principal) -> None:
        """Serve what comes next by the dispatcher, for this principal."""
        authenticator = self._authenticator
        assert authenticator is not None, violated("clients of SASL have an authenticator")
        self.caller = replace(self.caller, principal=principal, authenticator=authenticator)
        self._dispatcher = authenticator.dispatcher

    def note_failed_authentication(self, reason: str) -> None:
        """Count a client that was not authenticated, and log it."""
        self._shared.counters.note(
            Cause.FAILED_AUTHENTICATION,
            self._loop.time(),
            "Failed authentication with %s on listener %s: %s",
            self.caller.client_host,
            self._listener.name,
            reason,
        )

    # Called by what it has received.

    def wait_for_memory(self) -> None:
        """Read nothing more until `memory_found`."""
        self._starved = True
        self._pause()

    def memory_found(self) -> None:
        """Continue to read."""
        self._starved = False
        self._resume()

    # Frames.

    def _serve_one(self, view: memoryview) -> bool:
        """`_serve_frames` where `view` is exactly one whole frame, the usual case; else false."""
        size = len(view) - SIZE_BYTES
        if not 0 < size <= self._dispatcher.request_bytes_max or self._transport.is_closing():
            return False
        if _SIZE.unpack_from(view)[0] != size:
            return False
        if self._serve(view[SIZE_BYTES:]) and self._muted is None:
            self._shared.burst.join(self)
            return True
        self._flush()
        if self._is_blocked() and not (self._reads() or self._transport.is_closing()):
            self._pause()
        return True

    def _serve_frames(self, view: memoryview) -> None:
        """Serve the whole frames in `view` and keep the rest."""
        position, end = 0, len(view)
        time_slice_end = monotonic() + TIME_SLICE_S  # The loop's own time is of milliseconds.
        largest = self._dispatcher.request_bytes_max
        read_size = _SIZE.unpack_from
        while end - position >= SIZE_BYTES and not self._transport.is_closing():
            (size,) = read_size(view, position)
            if not 0 < size <= largest:
                # Requests before it were sound, and are answered wherever the network cut.
                self._flush()
                self.refuse(
                    Cause.BAD_FRAME,
                    f"it announced a request of {size} bytes, "
                    f"socket.request.max.bytes is {largest}",
                )
                return
            start = position + SIZE_BYTES
            if end - start < size:
                break
            position = self._serve_next(view, position, start + size)
            if position == end or self._is_blocked():
                break
            if monotonic() >= time_slice_end:
                self._yield_to_others()
                break
        self._flush()
        if self._transport.is_closing():
            return
        if position == end:
            self._release()
        else:
            self._keep(view[position:], position)
        if self._is_blocked() and not self._reads():
            self._pause()

    def _keep(self, rest: memoryview, position: int = 0) -> None:
        """Keep what cannot be served yet, `position` bytes into the last, with room for more."""
        if self._call is not None:
            self._call.follow()
        receive, now = self._receive, self._loop.time()
        largest = self._dispatcher.request_bytes_max
        if receive is None:
            self._receive = NetworkReceive(self, self._shared, rest, largest=largest, now=now)
        elif self._is_blocked():
            receive.served(position, now)
        else:
            receive.replace(rest, largest=largest, now=now)

    def _release(self) -> None:
        if self._receive is not None:
            self._receive.release()
            self._receive = None
            if self._memory.is_short:
                self._loop.call_soon(self._memory.wake)

    def _serve_next(self, view: memoryview, position: int, following: int) -> int:
        """Serve the request that begins at `position`, and what can be served together with it.

        `following` is where the request behind it would begin. Returns where the next one does.
        """
        if following < len(view):
            if self._apart:
                self._apart -= 1
            else:
                try:
                    served = self._dispatcher.serve_run(view, position, self.caller)
                except UnanswerableError as error:
                    self._refuse_request(error)
                    return following
                if served is None or served[1] == following:
                    self._apart = APART_REQUESTS
                if served is not None:
                    self._cost *= FALL  # Each of them is short.
                    self._out.append(served[0])
                    return served[1]
        self._serve(view[position + SIZE_BYTES : following])
        return following

    def _serve(self, frame: memoryview) -> bool:
        """Serve one request; its response is in `_out` afterwards, or awaited.

        Returns whether the response may be coalesced with others.
        """
        clock = clock_for(self._cost)
        began = clock()
        try:
            reply = self._dispatcher.serve(frame, self.caller)
        except (DecodeError, UnanswerableError) as error:
            self._refuse_request(error)
            return False
        if type(reply) is not bytes or self._cost > LONG_REQUEST_S:
            took = clock() - began
            self._cost = next_cost(self._cost, took)
            if took > LONG_REQUEST_S:
                self._shared.serving.spend(took)
        if type(reply) is bytes:
            self._out.append(reply)
            return True
        if isinstance(reply, list):
            self._out.extend(reply)
            # Slices of files, or much: learn now whether they can leave.
            if len(reply) > 1 or len(reply[0]) > FLUSH_BYTES:
                self._flush()
        elif isinstance(reply, PendingResponse):
            self._waiting_for = reply
            reply.session = self
        elif reply is not None:
            self._wait_for(cast("Reply | DelayedFailure", reply))
        return False

    def send_gathered(self) -> None:
        """Send the responses that were held back to be coalesced, and those behind them."""
        if self._transport.is_closing():
            return
        self._flush()
        if self._outbound.waiting:
            self._pause()

    def _wait_for(self, reply: "Reply | DelayedFailure") -> None:
        self._waiting_for = reply.future
        reply.future.add_done_callback(partial(self._answered, reply))
        if isinstance(reply, Reply):
            self._call = reply.call
            self._call.listen = self._listen

    def _answered(self, reply: Any, future: "asyncio.Future[Any]") -> None:
        if self._transport.is_closing():
            return
        if future.cancelled():  # No response will come, and the client would wait for it.
            self.close("its request was cancelled")
        elif self._cost > LONG_REQUEST_S and self._shared.serving.is_over:
            self._wait_to_be_served(partial(self._encode, reply, future))
        else:
            self._encode(reply, future)

    def _encode(self, reply: Any, future: "asyncio.Future[Any]") -> None:
        """Send an awaited response; encoding a long one is offloaded as its request was."""
        if self._transport.is_closing():
            return
        self._waiting_for = self._call = None
        began = perf_counter()
        try:
            answer = self._dispatcher.encode(reply, future)
        except UnanswerableError as error:
            self._fail(error)
            return
        if self._cost > LONG_REQUEST_S:
            self._shared.serving.spend(perf_counter() - began)
        if isinstance(answer, Reply):
            self._wait_for(answer)
            return
        self._out.extend(answer)
        self._go_on()

    def answer(self, request: PendingResponse) -> None:
        """Send the response of a request that waited, and continue."""
        if request is not self._waiting_for or self._transport.is_closing():
            return
        self._waiting_for = None
        try:
            self._out.append(request.encoded())
        except EncodeError as error:
            log.exception("Failed to encode a response")
            self._fail(error)
            return
        request.metrics.served(request.version, perf_counter_ns() - request.began_ns)
        self._go_on()

    def _go_on(self) -> None:
        """Send an awaited response, and serve the requests received meanwhile."""
        self.send_gathered()
        self._resume()

    # Flow.

    def _flush(self) -> None:
        if self._out:
            self._outbound.send(self._out)
            self._out = []

    def _is_blocked(self) -> bool:
        """Whether the next request must wait: for a response, the peer, a queue or memory."""
        return (
            self._waiting_for is not None
            or self._outbound.waiting
            or self._queued
            or self._muted is not None
            or self._starved
        )

    def _listen(self) -> None:
        if self._reads():
            self._read_on()

    def _reads(self) -> bool:
        """Whether to keep reading while a request waits for its response.

        A new fetch of a follower hurries the one before. A member that waits for the others of its
        group sends nothing until it is answered: to stop reading and to begin again would be
        wasted.
        """
        if self._receive is not None or self._outbound.waiting or self._muted is not None:
            return False
        hurried = self._call is not None and self._call.hurry is not None
        return hurried or isinstance(self._waiting_for, PendingResponse)

    def _mute(self, throttle_ms: int) -> None:
        """Serve and read nothing more for a time; what is to be sent is sent before (KIP-219)."""
        if self._muted is not None:
            self._muted.cancel()
        self._muted = self._loop.call_later(throttle_ms / 1000, self._unmute)
        self._pause()

    def _unmute(self) -> None:
        self._muted = None
        self._resume()

    def _yield_to_others(self) -> None:
        """Queue the rest of the requests that were received together behind other sessions."""
        self._floods = True
        self._join(self._shared.run_queue)

    def _keep_and_queue(self, received: memoryview, run_queue: RunQueue | None) -> None:
        """Queue the session with what it received; each loop iteration serves one session."""
        self._keep(received)
        receive = self._receive
        if receive is not None and receive.filled >= receive.needed:
            self._join(run_queue)
            self._pause()

    def _join(self, run_queue: RunQueue | None) -> None:
        """Wait in a run queue, or with the long requests."""
        self._queued = True
        if run_queue is None:
            self._wait_to_be_served(self._begin_time_slice)
        else:
            run_queue.join(self._begin_time_slice)

    def _wait_to_be_served(self, callback: Callable[[], None]) -> None:
        self._shared.serving.join(
            callback, self.caller.principal, self.caller.client_host, self._cost
        )

    def _begin_time_slice(self) -> None:
        self._queued = False
        self.active_at = self._loop.time()
        self._resume()

    def _pause(self) -> None:
        if self._outbound.waiting:
            self._shared.output.stalled(self, self._outbound.held_bytes)
        if not self.paused:
            self.paused = True
            self._transport.pause_reading()

    def _drained(self) -> None:
        self._shared.output.drained(self)
        self._resume()

    def _resume(self) -> None:
        """Continue after a wait: first with received requests, then with the socket."""
        if (self._is_blocked() and not self._reads()) or self._transport.is_closing():
            return
        if (receive := self._receive) is not None:
            if receive.begun or receive.filled >= receive.needed:
                self.active_at = self._loop.time()
                self._serve_frames(memoryview(receive.buffer)[receive.begun : receive.filled])
            else:
                receive.grow()
            if self._is_blocked() and not self._reads():
                return
        self._read_on()

    def _read_on(self) -> None:
        if self.paused and not self._transport.is_closing():
            self.paused = False
            self.active_at = self._loop.time()
            self._transport.resume_reading()

    def close_when_sent(self) -> None:
        """End the connection; what is queued for a slow peer is not worth holding it open for."""
        self._transport.close()

    def _refuse_request(self, error: Exception) -> None:
        """End the connection for a request that has no answer, those before it being answered."""
        self._flush()
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._complain(Cause.BAD_REQUEST, str(error))
        self.close_when_sent()

    def _complain(self, cause: Cause, reason: str) -> None:
        self._shared.counters.note(
            cause,
            self._loop.time(),
            "closing the connection of %s: %s",
            self.caller.client_host,
            reason,
        )

    def _broken(self, error: OSError) -> None:
        log.debug("%s is gone: %s", self.caller.client_host, error)
        self._transport.abort()
