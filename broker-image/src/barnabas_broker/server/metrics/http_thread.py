"""A small HTTP server in a thread with an event loop of its own.

Its clients are probes and scrapers: one GET for each connection, and a short answer. Any host that
reaches the port can also send a byte every few seconds, or read nothing. So no connection holds a
thread; asking, headers and all, has one deadline, and so has taking the answer; there are so many
places, and a new connection evicts the oldest one. Urgent paths have places besides,
which are never evicted. (docs/adr/0011-an-admin-port-of-our-own.md)
"""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Collection
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from io import BytesIO
from ssl import SSLContext
from typing import Final, NamedTuple, cast

from barnabas_broker.security.resumed_sessions import outlives_certificate

log = logging.getLogger(__name__)

PLACES: Final = 64
"""Connections at a time; each takes a descriptor, and at most some 40 KiB while it asks."""

URGENT_PLACES: Final = 16
"""Extra connections for urgent paths; further ones share the other places."""

TIMEOUT_S: Final = 5.0
"""How long a client may take to ask, and then to take the answer."""

HEAD_BYTES_MAX: Final = 16 << 10
"""Request line and headers."""

RENEWAL_S: Final = 1.0
"""How often to look for changed key stores and tokens."""

BACKLOG: Final = 128
"""Connections the kernel keeps for us, and that are accepted before others are served."""

TEXT: Final = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """What a request gets."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT
    challenge: str = ""
    """What a client that is refused has to show (`WWW-Authenticate`)."""


class Question(NamedTuple):
    """What a request asks, and its authenticated principal."""

    method: str
    path: str
    accept: str = ""
    authorization: str = ""
    certified: bool = False
    """Whether the connection has a client certificate that is trusted."""


def _plain() -> None:
    """No TLS."""


class HttpThread:
    """Serves one address from `open` to `close`."""

    def __init__(
        self,
        address: tuple[str, int],
        answer: Callable[[Question], Awaitable[Answer]],
        *,
        urgent: Collection[str],
        tls: Callable[[], SSLContext | None] = _plain,
        renew: Callable[[], None] | None = None,
    ) -> None:
        """Bind; raises OSError.

        `answer` is asked in the thread. `tls` is what the next connection is accepted with, None
        for plain HTTP. `renew` is called every second, beside the thread, and may block on files.
        """
        self._answer = answer
        self._urgent = urgent
        self._tls = tls
        self._renew = renew
        self.socket = _bound(address)
        self.server_name: str
        self.server_port: int
        self.server_name, self.server_port = self.socket.getsockname()[:2]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="admin", daemon=True)
        self._places: dict[asyncio.Task[None], None] = {}  # In the order in which they came.
        self._urgent_places: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    def open(self) -> None:
        """Begin to answer."""
        self.socket.listen(BACKLOG)  # Here, so that connections queue until the thread runs.
        self._thread.start()

    def close(self) -> None:
        """Close the port. Blocks until the thread has ended."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()
        self.socket.close()
        if not self._loop.is_closed():
            self._loop.close()

    # In the thread.

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve_until_closed())

    async def _serve_until_closed(self) -> None:
        # Where there is no descriptor for a newcomer asyncio tries again after a second.
        server = await asyncio.start_server(
            self._come, sock=self.socket, backlog=BACKLOG, limit=HEAD_BYTES_MAX
        )
        while self._renew is not None and not self._closing.is_set():
            try:
                await asyncio.wait_for(self._closing.wait(), RENEWAL_S)
            except TimeoutError:
                await asyncio.to_thread(self._renewed, self._renew)
        await self._closing.wait()
        server.close()

    @staticmethod
    def _renewed(renew: Callable[[], None]) -> None:
        try:
            renew()
        except Exception:  # The port goes on with what it has.
            log.exception("Renewal of the admin port's certificates and tokens failed")

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._places[task] = None
        if len(self._places) > PLACES:
            next(iter(self._places)).cancel()
        try:
            await self._serve(task, reader, writer)
        except asyncio.CancelledError:
            log.debug("a newcomer has the place of %s", writer.get_extra_info("peername"))
        except (OSError, EOFError, TimeoutError) as error:  # It has gone, or takes too long.
            log.debug("%s: %r", writer.get_extra_info("peername"), error)
        finally:
            self._places.pop(task, None)
            self._urgent_places.discard(task)
            writer.transport.abort()

    async def _serve(
        self,
        task: "asyncio.Task[None]",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            if (context := self._tls()) is not None:
                # Here and not by the server: a handshake has a place, too. Nothing has been read
                # yet, for this task began before its connection was served.
                await writer.start_tls(context)
            asked = await _asked(reader, certified=_certified(writer))
        if isinstance(asked, Question):
            if asked.path in self._urgent and len(self._urgent_places) < URGENT_PLACES:
                self._urgent_places.add(task)
                self._places.pop(task, None)
            answer = await self._answered(asked)
        else:
            answer = asked
        has_body = not isinstance(asked, Question) or asked.method != "HEAD"
        async with asyncio.timeout(TIMEOUT_S):
            writer.write(_encoded(answer, has_body=has_body))
            writer.close()
            await writer.wait_closed()

    async def _answered(self, question: Question) -> Answer:
        if question.method not in ("GET", "HEAD"):
            return Answer(HTTPStatus.NOT_IMPLEMENTED, b"there is GET and HEAD\n")
        try:
            return await self._answer(question)
        except Exception:  # The boundary between one request and the others.
            log.exception("Request to the admin port failed: %s", question.path)
            text = b"the broker failed to answer; its log says why\n"
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, text)


def _bound(address: tuple[str, int]) -> socket.socket:
    """Connections of a broker that ended a moment ago do not keep the next one from its port."""
    sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def _certified(writer: asyncio.StreamWriter) -> bool:
    tls = writer.get_extra_info("ssl_object")
    # It is there only where the handshake has verified it.
    return (
        tls is not None
        and tls.getpeercert(binary_form=True) is not None
        and not outlives_certificate(tls, time.time())
    )


async def _asked(reader: asyncio.StreamReader, *, certified: bool) -> Question | Answer:
    """What a client asks, or what is wrong with it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return Answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, b"the headers are too large\n")
    line, _, rest = head.partition(b"\r\n")
    try:
        method, target, version = line.decode("ascii").split(" ")
        headers = parse_headers(BytesIO(rest))
    except (ValueError, HTTPException):
        return Answer(HTTPStatus.BAD_REQUEST, b"this is not HTTP\n")
    if not version.startswith("HTTP/1."):
        return Answer(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, b"there is HTTP/1.1\n")
    return Question(
        method,
        target.partition("?")[0],
        headers.get("Accept", ""),
        headers.get("Authorization", ""),
        certified,
    )


def _encoded(answer: Answer, *, has_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        + (f"WWW-Authenticate: {answer.challenge}\r\n" if answer.challenge else "")
        + "Connection: close\r\n\r\n"
    )
    return head.encode() + (answer.body if has_body else b"")
