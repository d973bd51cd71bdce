"""An HTTP server on loopback, in threads, for parts that fetch."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Answering(BaseHTTPRequestHandler):
    """Prints nothing; handlers say what they answer to."""

    def do_GET(self) -> None:
        """See BaseHTTPRequestHandler."""
        self.get()

    def do_POST(self) -> None:
        """See BaseHTTPRequestHandler."""
        self.post()

    def get(self) -> None:
        """Answer a GET."""
        self.send_error(501)

    def post(self) -> None:
        """Answer a POST."""
        self.send_error(501)

    def answer(self, status: int, body: bytes, location: str = "") -> None:
        """Send a whole response; redirections have a location."""
        self.send_response(status)
        if status in (302, 307):
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing on the terminal."""


class HttpServer:
    """Runs until it is closed; over TLS with a context."""

    def __init__(
        self, handler: type[Answering], path: str, context: ssl.SSLContext | None = None
    ) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://localhost:{self._server.server_port}{path}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
