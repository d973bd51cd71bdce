"""The role of an ensemble member: a port, and its adaptor on ZooKeeper's `srvr` command.

A member names its mode (`leader`, `follower`, `standalone`) only while it serves; without a quorum
it says so instead, which is no mode.
"""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass
from typing import Final

from barnabas_operator.answers import connect, handshake, left
from barnabas_operator.names import ZOOKEEPER_PORT

TIMEOUT_S: Final = 2.0
LARGEST: Final = 1 << 16
MODE: Final = "Mode: "


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAccess:
    """How a member is reached: its port, and over TLS what is shown to it."""

    port: int = ZOOKEEPER_PORT
    tls: ssl.SSLContext | None = None
    host: str = ""
    """The name that its certificate has to have; with `tls`."""


PLAIN: Final = MemberAccess()


def mode(address: str, access: MemberAccess = PLAIN) -> str:
    """The member's mode; empty if it does not answer or does not serve."""
    until = time.monotonic() + TIMEOUT_S
    try:
        with _connect(address, access, until) as connection:
            connection.sendall(b"srvr")
            text = _read(connection, until).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = (line for line in text.splitlines() if line.startswith(MODE))
    return next(lines, "").removeprefix(MODE).strip()


def _connect(address: str, access: MemberAccess, until: float) -> socket.socket:
    connection = connect(address, access.port, until)
    return (
        connection if access.tls is None else handshake(connection, access.tls, access.host, until)
    )


def _read(connection: socket.socket, until: float) -> bytes:
    """Until the member closes, which it does after its answer; raises TimeoutError after `until`.

    One that sends a byte now and then has no longer than one that is silent.
    """
    received = b""
    while len(received) < LARGEST:
        connection.settimeout(left(until))
        part = connection.recv(4096)
        if not part:
            break
        received += part
    return received
