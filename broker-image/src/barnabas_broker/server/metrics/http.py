"""The admin port: metrics for Prometheus, and for probes whether the broker lives and serves.

It answers in threads of its own, so that it can say that the event loop does not. There are few of
them, each request has a time limit, and who comes when all are busy waits in the kernel's queue.
"""

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import BoundedSemaphore
from typing import Any, Final, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

log = logging.getLogger(__name__)

THREADS: Final = 4
PATIENCE_S: Final = 5
"""How long a client may take to ask, and the event loop to answer."""

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"

Standing = tuple[bool, Mapping[str, object]]
"""Yes or no, and why."""

T = TypeVar("T")


class Answer(NamedTuple):
    """What a request gets."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT


class AdminServer(HTTPServer):
    """The HTTP server of one broker. `open` it on the event loop; `close` it in a thread."""

    request_queue_size = 16

    def __init__(
        self,
        address: tuple[str, int],
        *,
        collect: Callable[[], Coroutine[Any, Any, list[Metric]]],
        unready: Callable[[], str | None],
        standing: Mapping[str, Callable[[], Standing]],
    ) -> None:
        """Bind; raises OSError.

        On the loop, `collect` gathers what `/metrics` tells, `unready` gives the reason for which
        clients should stay away, if there is one, and `standing` answers paths with yes or no.
        """
        super().__init__(address, _Handler)
        self._loop = asyncio.get_running_loop()
        self._collect = collect
        self._unready = unready
        self._standing = standing
        self._threads = ThreadPoolExecutor(THREADS + 1, thread_name_prefix="admin")
        self._free = BoundedSemaphore(THREADS)
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def server_bind(self) -> None:
        """Bind, and do not ask the name service who we are.

        Connections of a broker that ended a moment ago do not keep the next one from its port.
        """
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.server_name, self.server_port = self.socket.getsockname()[:2]

    def open(self) -> None:
        """Begin to answer."""
        self._threads.submit(self.serve_forever, poll_interval=0.2)

    def close(self) -> None:
        """Answer who is there, and nobody more. Blocks."""
        self.shutdown()
        self.server_close()
        self._threads.shutdown(wait=True)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Have a thread answer; wait for one before the next is accepted."""
        self._free.acquire()
        self._threads.submit(self._answer_in_thread, request, client_address)

    def _answer_in_thread(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError as error:  # The client has gone.
            log.debug("%s: %s", client_address[0], error)
        finally:
            self.shutdown_request(request)
            self._free.release()

    # Called in the threads.

    def answer(self, path: str, accept: str) -> Answer:
        """The answer to GET `path`."""
        try:
            match path.partition("?")[0]:
                case "/metrics":
                    return self._metrics(accept)
                case "/live":
                    self._on_loop(_nothing())
                    return Answer(HTTPStatus.OK, b"live\n")
                case "/ready":
                    return self._ready()
                case other if other in self._standing:
                    return self._stand(self._standing[other])
                case _:
                    known = ", ".join(("/metrics", "/live", "/ready", *self._standing))
                    return Answer(HTTPStatus.NOT_FOUND, f"there is {known}\n".encode())
        except TimeoutError:
            text = f"the event loop has not answered for {PATIENCE_S} s\n"
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, text.encode())

    def _metrics(self, accept: str) -> Answer:
        found = self._on_loop(self._collect())
        encode, content_type = choose_encoder(accept)
        everything = _Found([*found, *self._process.collect()])
        return Answer(HTTPStatus.OK, encode(everything), content_type)

    def _ready(self) -> Answer:
        async def asked() -> str | None:
            return self._unready()

        reason = self._on_loop(asked())
        if reason is None:
            return Answer(HTTPStatus.OK, b"ready\n")
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{reason}\n".encode())

    def _stand(self, question: Callable[[], Standing]) -> Answer:
        async def asked() -> Standing:
            return question()

        yes, told = self._on_loop(asked())
        status = HTTPStatus.OK if yes else HTTPStatus.SERVICE_UNAVAILABLE
        return Answer(status, json.dumps(told).encode() + b"\n", JSON)

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)


class _Found(CollectorRegistry):
    """What was collected already, in the shape that the encoders take."""

    def __init__(self, families: list[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Any:
        """The families."""
        return iter(self._families)


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE_S
    server: AdminServer

    def do_GET(self) -> None:
        answer = self.server.answer(self.path, self.headers.get("Accept", ""))
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815

    def version_string(self) -> str:
        """Do not tell strangers which Python this is."""
        return "barnabas"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
        """Probes come every few seconds, and nobody wants to read of each."""
        log.debug(format, *args)


async def _nothing() -> None:
    pass
