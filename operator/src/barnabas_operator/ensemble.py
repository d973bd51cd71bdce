"""The role of an ensemble member: a port, and its adaptor on ZooKeeper's `srvr` command.

A member names its mode (`leader`, `follower`, `standalone`) only while it serves; without a quorum
it says so instead, which is no mode.
"""

from __future__ import annotations

import socket
import time
from typing import Final

from barnabas_operator.names import ZOOKEEPER_PORT

TIMEOUT_S: Final = 2.0
LARGEST: Final = 1 << 16
MODE: Final = "Mode: "


def mode(address: str, port: int = ZOOKEEPER_PORT) -> str:
    """The member's mode; empty if it does not answer or does not serve."""
    until = time.monotonic() + TIMEOUT_S
    try:
        with socket.create_connection((address, port), timeout=TIMEOUT_S) as connection:
            connection.sendall(b"srvr")
            text = _read(connection, until).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = (line for line in text.splitlines() if line.startswith(MODE))
    return next(lines, "").removeprefix(MODE).strip()


def _read(connection: socket.socket, until: float) -> bytes:
    """Until the member closes, which it does after its answer; raises TimeoutError after `until`.

    One that sends a byte now and then has no longer than one that is silent.
    """
    received = b""
    while len(received) < LARGEST:
        connection.settimeout(_left(until))
        part = connection.recv(4096)
        if not part:
            break
        received += part
    return received


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
