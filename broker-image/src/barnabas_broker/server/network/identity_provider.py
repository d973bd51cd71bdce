"""Requests to an identity provider, bounded in time and size; they block.

Nothing is remembered between two of them. A redirection never leads from https to http. What a
request posts, with its credentials, goes to the address of the settings and nowhere else.
"""

import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from barnabas_broker.security.stores import Store, load_pem_trust, load_trust
from barnabas_kafka.host_resolver import HostResolver

FETCH_TIMEOUT_S: Final = 10.0
CHUNK_BYTES: Final = 65_536

_RESOLVER: Final = HostResolver()
"""A look-up that hangs outlives the fetch that began it, and the next one shares it."""


def fetch(
    url: str,
    context: ssl.SSLContext | None,
    *,
    bytes_max: int,
    posted: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """What an http or https address answers to a GET, or to a POST of a form.

    Raises OSError (an HTTPError among them), HTTPException or ValueError where there is none.
    """
    with _Deadline(FETCH_TIMEOUT_S) as deadline:
        opener = urllib.request.OpenerDirector()
        for handler in (
            _Connections(deadline, context),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            *([_SameSchemeRedirects()] if posted is None else []),
        ):
            opener.add_handler(handler)
        request = urllib.request.Request(  # noqa: S310 - the settings allow http and https
            url, posted, {"Accept": "application/json", **(headers or {})}
        )
        try:
            response = opener.open(request)
        except urllib.error.HTTPError as error:
            error.close()
            raise
        with response:
            body = bytearray()
            while chunk := response.read1(CHUNK_BYTES):
                body += chunk
                if len(body) > bytes_max:
                    raise ValueError(f"more than {bytes_max} bytes")
    return bytes(body)


def trusting(url: str, trust: Mapping[str, str]) -> ssl.SSLContext | None:
    """What an https address is trusted by: `ssl.truststore.*` if given, else the system's.

    None for an address of another kind. Raises StoreError where the store cannot be used.
    """
    if urlsplit(url).scheme != "https":
        return None
    location, inline = (
        trust.get("ssl.truststore.location"),
        trust.get("ssl.truststore.certificates"),
    )
    if not location and not inline:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if inline:
        load_pem_trust(context, inline)
    else:
        load_trust(
            context,
            Store(
                path=Path(location or ""),
                kind=trust.get("ssl.truststore.type"),
                password=trust.get("ssl.truststore.password"),
            ),
        )
    return context


class _Deadline:
    """The end of one fetch, with all its connections: a peer that drips does not put it off.

    Time limits of sockets are those of single reads. When time is over, the connection is shut
    down, which ends whatever waits for it: handshake, headers or body.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._ends_at_s = time.monotonic() + timeout_s
        self._timer = threading.Timer(timeout_s, self._end)
        self._timer.daemon = True
        self._lock = threading.Lock()  # Over `_socket`: none is shut down that is closed.
        self._socket: socket.socket | None = None
        self._over = False

    def __enter__(self) -> "_Deadline":
        self._timer.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._socket = None
        if self._over:
            raise self._late from error

    @property
    def _late(self) -> TimeoutError:
        return TimeoutError(f"not received in {self._timeout_s:.0f} s")

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection within the time that is left. Raises OSError."""
        return self.holds(_RESOLVER.connect_blocking(host, port, self._left_s))

    def holds(self, connection: socket.socket) -> socket.socket:
        """This is the one that ends when time is over. Raises TimeoutError where it is already."""
        with self._lock:
            if not self._over:
                self._socket = connection
                return connection
        connection.close()
        raise self._late

    @property
    def _left_s(self) -> float:
        left_s = self._ends_at_s - time.monotonic()
        if left_s <= 0:
            raise self._late
        return left_s

    def _end(self) -> None:
        with self._lock:
            self._over = True
            if self._socket is not None:
                with suppress(OSError):
                    # Not `SSLSocket.shutdown`, which takes the TLS away under a thread that reads.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Connections(urllib.request.AbstractHTTPHandler):
    """Opens http and https, each connection under the deadline."""

    def __init__(self, deadline: _Deadline, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._deadline = deadline
        self._context = context

    def http_open(self, req: urllib.request.Request) -> Any:
        """Without TLS."""
        return self.do_open(self._connection(None), req)

    def https_open(self, req: urllib.request.Request) -> Any:
        """With TLS, where the endpoint's own address is https."""
        return self.do_open(self._connection(self._context), req)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_

    def _connection(self, context: ssl.SSLContext | None) -> type[HTTPConnection]:
        deadline = self._deadline

        class Connection(HTTPConnection):
            default_port = 80 if context is None else 443

            def connect(self) -> None:
                self.sock = plain = deadline.connect(self.host, self.port)
                if context is not None:
                    secured = context.wrap_socket(
                        plain, server_hostname=self.host, do_handshake_on_connect=False
                    )
                    self.sock = deadline.holds(secured)
                    secured.do_handshake()

        return Connection


class _SameSchemeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but never from https to http, nor to anything else."""

    def redirect_request(self, req: urllib.request.Request, *args: Any) -> Any:
        if urlsplit(args[-1]).scheme != urlsplit(req.full_url).scheme:
            return None
        return super().redirect_request(req, *args)
