"""What a pod answers over HTTP, as JSON.

Pods may run images that are not of this project. So an answer has a deadline as a whole, from the
lookup of the host to the last byte, it has a largest size, and it leads to no other address.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
import time
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from barnabas_kafka.host_resolver import HostResolver

LARGEST: Final = 1 << 20
LOOKUPS_MAX: Final = 64
"""Concurrent lookups: those that hang outlast the answers they were for."""

_RESOLVER: Final = HostResolver(LOOKUPS_MAX)


def get_json(
    url: str,
    timeout_s: float,
    *,
    token: str = "",
    tls: ssl.SSLContext | None = None,
    statuses: range = range(100, 600),
) -> Any:
    """The JSON at an address; None without an answer in time, or with another status.

    `tls` is for https; None trusts the authorities of the machine.
    """
    until = time.monotonic() + timeout_s
    headers = {"Accept": "application/json", "Connection": "close"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        parts = urlsplit(url)
        with _connect(parts, tls, until) as received:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
            # What it sends and receives by, instead of a connection of its own.
            connection.sock = _Timed(received, until)
            connection.request("GET", parts.path, headers=headers)
            answer = connection.getresponse()
            return json.loads(answer.read(LARGEST)) if answer.status in statuses else None
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return None


def _connect(parts: SplitResult, tls: ssl.SSLContext | None, until: float) -> socket.socket:
    host, secured = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (http.client.HTTPS_PORT if secured else http.client.HTTP_PORT)
    plain = connect(host, port, until)
    return handshake(plain, tls, host, until) if secured else plain


def connect(host: str, port: int, until: float) -> socket.socket:
    """A connection to the first address that accepts it; raises OSError, also after `until`."""
    return _RESOLVER.connect_blocking(host, port, left(until))


def handshake(
    plain: socket.socket, tls: ssl.SSLContext | None, host: str, until: float
) -> ssl.SSLSocket:
    """TLS on a connection, which is closed where that fails or takes longer than `until`."""
    context = tls or ssl.create_default_context()
    try:
        secured = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    except BaseException:
        plain.close()
        raise
    try:
        # Of the handshake as a whole, however slowly its bytes come.
        secured.settimeout(left(until))
        secured.do_handshake()
    except BaseException:
        secured.close()
        raise
    return secured


def left(until: float) -> float:
    """Seconds until a moment of the monotonic clock; raises TimeoutError once it has passed."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


class _Timed:
    """As much of a socket as http.client asks for, with one deadline for all of it."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._connection = connection
        self._until = until

    def sendall(self, data: bytes) -> None:
        """See socket."""
        self._connection.settimeout(left(self._until))
        self._connection.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What is received; `mode` is rb."""
        return io.BufferedReader(_Received(self._connection, self._until))

    def close(self) -> None:
        """Called before what was received is read; the connection is closed after that."""


class _Received(io.RawIOBase):
    """What a connection receives until its deadline."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._connection = connection
        self._until = until

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See RawIOBase."""
        self._connection.settimeout(left(self._until))
        return self._connection.recv_into(buffer)
