"""Health and metrics over HTTP, served by a thread of its own from the first moment.

The server does not share the event loop, so it can report that the event loop is stuck. `/healthz`
is the liveness probe: it fails only where a restart is the remedy. `/readyz` is the readiness
probe: it fails until the first resync. `/metrics` is Prometheus' text format.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST

from barnabas_operator.handlers.work_queue import WorkQueue

logger: Final = logging.getLogger(__name__)

# The controller beats every few seconds; a pause of that length is no slow machine.
LOOP_STUCK_S: Final = 60.0
# Every pass has a deadline far below that, and every call in it has one.
PASS_STUCK_S: Final = 300.0
REQUEST_TIMEOUT_S: Final = 5.0


@dataclass(slots=True)
class Health:
    """What the probes are answered from; written by the event loop, read by other threads."""

    last_beat: float = field(default_factory=time.monotonic)
    pass_started: float | None = None
    pass_of: str = ""
    synced: bool = False

    def beat(self, queue: WorkQueue, now: float) -> None:
        """The event loop runs; the oldest pass of the queue is noted."""
        self.last_beat = now
        age, key = queue.longest_pass(now)
        self.pass_started = now - age if key is not None else None
        self.pass_of = str(key or "")

    def stuck(self, now: float) -> str:
        """What is stuck so that only a restart helps; empty if nothing is."""
        if (silent := now - self.last_beat) > LOOP_STUCK_S:
            return f"the event loop has not run for {silent:.0f} s"
        if self.pass_started is not None and (age := now - self.pass_started) > PASS_STUCK_S:
            return f"the reconciliation of {self.pass_of} has run for {age:.0f} s"
        return ""

    def not_ready(self, now: float) -> str:
        """Why the operator does not do its work yet; empty if it does."""
        if not self.synced:
            return "resources have not been listed yet"
        return self.stuck(now)


class _Request(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_TIMEOUT_S

    def do_GET(self) -> None:
        """A probe or a scrape."""
        path = self.path.split("?")[0]
        if path == "/metrics":
            self._send(200, CONTENT_TYPE_LATEST, self.server.metrics())
        elif path in ("/healthz", "/readyz"):
            health, now = self.server.health, time.monotonic()
            problem = health.stuck(now) if path == "/healthz" else health.not_ready(now)
            self._send(503 if problem else 200, "text/plain", f"{problem or 'ok'}\n".encode())
        else:
            self._send(404, "text/plain", b"not found\n")

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Probes come every few seconds."""
        logger.debug(format, *args)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, health: Health, metrics: Callable[[], bytes]) -> None:
        self.health = health
        self.metrics = metrics
        # On the addresses of both families, where the machine has both.
        dual = socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if dual else socket.AF_INET
        super().__init__(("::" if dual else "0.0.0.0", port), _Request)  # noqa: S104 - probes

    def server_bind(self) -> None:
        """Bind to both families."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A prober that hangs up is none of the operator's business."""
        logger.debug("Probe failed: client=%s", client_address, exc_info=True)


@contextmanager
def serve(port: int, health: Health, metrics: Callable[[], bytes]) -> Iterator[int]:
    """Serve while the block runs; gives the port."""
    server = _Server(port, health, metrics)
    thread = threading.Thread(target=server.serve_forever, name="health", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
