"""The mode of an ensemble member, as `srvr` answers."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barnabas_operator.ensemble import mode

SERVING = b"Zookeeper version: 3.9.5\nLatency min/avg/max: 0/0.0/0\nMode: leader\nNode count: 5\n"
WITHOUT_QUORUM = b"This ZooKeeper instance is not currently serving requests\n"


@contextmanager
def member(answer: bytes) -> Iterator[int]:
    """A member that answers srvr so and closes, as ZooKeeper does; its port."""

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if self.request.recv(4) == b"srvr":
                self.request.sendall(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("answer", "expected"), [(SERVING, "leader"), (WITHOUT_QUORUM, ""), (b"", "")]
)
def test_a_member_names_its_mode_only_while_it_serves(answer: bytes, expected: str) -> None:
    """A member without a quorum answers, but has no mode."""
    with member(answer) as port:
        assert mode("127.0.0.1", port) == expected


def test_a_member_that_is_gone_has_no_mode() -> None:
    """A refused connection is an answer too."""
    with member(b"") as port:
        pass
    assert mode("127.0.0.1", port) == ""
