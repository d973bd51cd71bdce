"""Clients that leave while nobody reads from them."""

import socket
from dataclasses import dataclass

import pytest

from barnabas_broker.server.departures import departed


@dataclass
class Connection:
    """One end of a connection, parked or not."""

    parked_fd: int | None


@pytest.mark.parametrize("unread", [b"", b"a request"])
def test_who_closed_is_found(unread: bytes) -> None:
    """With what was sent before the end, and nobody else."""
    ours, theirs = socket.socketpair()
    stays, other = socket.socketpair()
    with ours, theirs, stays, other:
        connections = [Connection(stays.fileno()), Connection(ours.fileno()), Connection(None)]
        theirs.sendall(unread)
        assert list(departed(connections)) == []
        theirs.shutdown(socket.SHUT_WR)
        assert list(departed(connections)) == [(connections[1], len(unread))]


def test_nobody_parked_costs_nothing() -> None:
    """Nor is anybody found."""
    assert list(departed([Connection(None)])) == []
