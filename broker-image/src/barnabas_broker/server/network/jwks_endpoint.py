"""The keys of an identity provider: fetched in a thread, and again as long as they are used.

A listener's tokens are checked with the keys of the last fetch that succeeded. Until the first one
has, every token is refused, and the broker serves all others: an identity provider that is down
must not keep a cluster from starting (Kafka's broker does not start then).

A token whose key is not known makes the keys be fetched again at once, so that a provider may sign
with a new key without waiting; at most once in MISSING_KEY_INTERVAL_S, for anybody can invent keys.
"""

import asyncio
import logging
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from barnabas_broker.security.bearer_settings import KeySource
from barnabas_broker.security.jwks import BYTES_MAX, KeySet, KeySetError
from barnabas_broker.security.stores import Store, StoreError, load_pem_trust, load_trust
from barnabas_broker.server.peers.host_resolver import HostResolver

logger = logging.getLogger(__name__)

FETCH_TIMEOUT_S: Final = 10.0
CHUNK_BYTES: Final = 65_536
MISSING_KEY_INTERVAL_S: Final = 10.0
REFRESH_MAX_S: Final = 365 * 86_400.0

_RESOLVER: Final = HostResolver()
"""A look-up that hangs outlives the fetch that began it, and the next one shares it."""


class JwksEndpoint:
    """The keys behind one address; `follow` fetches them for as long as it runs."""

    def __init__(self, source: KeySource) -> None:
        """Raises StoreError where the trust store for https cannot be used."""
        self.source = source
        self._context = _context(source)
        self._keys: KeySet | None = None
        self._missing = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fetched_at = float("-inf")

    @property
    def keys(self) -> KeySet | None:
        """The keys known now, None before the first fetch has succeeded."""
        return self._keys

    def key_missing(self) -> None:
        """Have the keys fetched again soon: a token names one that is not known. On the loop."""
        loop = self._loop
        if loop is not None and loop.time() - self._fetched_at >= MISSING_KEY_INTERVAL_S:
            self._missing.set()

    async def follow(self) -> None:
        """Fetch the keys, again after `refresh.ms`, and sooner after a failure."""
        self._loop = asyncio.get_running_loop()
        failures = 0
        while True:
            self._missing.clear()
            self._fetched_at = self._loop.time()
            try:
                self._keys = await asyncio.to_thread(self.fetch)
            except (OSError, HTTPException, ValueError) as error:
                failures += 1
                pause_s = self._backoff_s(failures)
                logger.error(
                    "Failed to fetch the keys of %s, trying again in %.1f s: %s",
                    self.source.url, pause_s, error,
                )  # fmt: skip
            else:
                failures = 0
                pause_s = min(max(self.source.refresh_ms, 1) / 1000, REFRESH_MAX_S)
                logger.info("Fetched %d keys of %s", len(self._keys.keys), self.source.url)
            try:
                await asyncio.wait_for(self._missing.wait(), pause_s)
            except TimeoutError:
                pass

    def fetch(self) -> KeySet:
        """Fetch the keys now; blocks.

        Raises OSError, HTTPException or ValueError where there are none.
        """
        with _Deadline(FETCH_TIMEOUT_S) as deadline:
            opener = urllib.request.OpenerDirector()
            for handler in (
                _Connections(deadline, self._context),
                urllib.request.HTTPDefaultErrorHandler(),
                urllib.request.HTTPErrorProcessor(),
                _SameSchemeRedirects(),
            ):
                opener.add_handler(handler)
            request = urllib.request.Request(  # noqa: S310 - the settings allow http and https
                self.source.url, headers={"Accept": "application/json"}
            )
            with opener.open(request) as response:
                body = bytearray()
                while chunk := response.read1(CHUNK_BYTES):
                    body += chunk
                    if len(body) > BYTES_MAX:
                        raise KeySetError(f"more than {BYTES_MAX} bytes")
        return KeySet.parse(bytes(body))

    def _backoff_s(self, failures: int) -> float:
        first, longest = self.source.retry_backoff_ms, self.source.retry_backoff_max_ms
        pause_ms = min(first << min(failures - 1, 20), longest)
        return min(max(pause_ms, 1) / 1000, REFRESH_MAX_S)


class FileKeys:
    """The keys of a file, as it was when the listener's settings were read."""

    def __init__(self, path: Path) -> None:
        """Raises StoreError where the file holds no keys."""
        try:
            with path.open("rb") as file:
                self.keys: Final = KeySet.parse(file.read(BYTES_MAX + 1))
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        except KeySetError as error:
            raise StoreError(f"{path}: {error}") from error

    def key_missing(self) -> None:
        """A changed file is read again anyway."""


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
        error: OSError | None = None
        for address in _RESOLVER.resolve_blocking(host, self._left_s):
            try:
                return self.holds(socket.create_connection((address, port), self._left_s))
            except OSError as failed:
                error = failed
        raise error or OSError(f"{host} has no address")

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
                    # Not `SSLSocket.shutdown`, which takes its TLS away from who reads by it.
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


def _context(source: KeySource) -> ssl.SSLContext | None:
    """What an https endpoint is trusted by: the login module's store, else the system's."""
    if urlsplit(source.url).scheme != "https":
        return None
    trust = source.trust
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
