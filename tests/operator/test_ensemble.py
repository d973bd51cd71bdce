"""The mode of an ensemble member, as `srvr` answers."""

from __future__ import annotations

import os
import resource
import socket
import socketserver
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest

from barnabas_kafka.certificates import KeyPair, create_authority, issue
from barnabas_operator.brokers import ClientTls
from barnabas_operator.ensemble import MemberAccess, mode

SERVING = b"Zookeeper version: 3.9.5\nLatency min/avg/max: 0/0.0/0\nMode: leader\nNode count: 5\n"
WITHOUT_QUORUM = b"This ZooKeeper instance is not currently serving requests\n"


@contextmanager
def member(answer: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A member that answers srvr so and closes, as ZooKeeper does; its port."""

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with ExitStack() as stack, suppress(OSError):
                connection = self.request
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_side=True)
                    stack.enter_context(connection)
                if connection.recv(4) == b"srvr":
                    connection.sendall(answer)

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
        assert mode("127.0.0.1", MemberAccess(port=port)) == expected


def test_a_member_that_is_gone_has_no_mode() -> None:
    """A refused connection is an answer too."""
    with member(b"") as port:
        pass
    assert mode("127.0.0.1", MemberAccess(port=port)) == ""


HOST = "quickstart-zookeeper.default.svc"


def context(authority: KeyPair, name: str, trusted: KeyPair) -> ssl.SSLContext:
    """What a member or the operator shows and trusts."""
    now = datetime.now(tz=UTC)
    pair = issue(authority, name, hosts=[HOST], now=now, validity=timedelta(days=1))
    shown = ClientTls(certificate=pair.certificate, key=pair.key, trusted=trusted.certificate)
    return shown.context()


def server(authority: KeyPair) -> ssl.SSLContext:
    """A member's side, which asks for certificates of its own authority."""
    now = datetime.now(tz=UTC)
    pair = issue(authority, "z", hosts=[HOST], now=now, validity=timedelta(days=1))
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.verify_mode = ssl.CERT_REQUIRED
    found.load_verify_locations(cadata=authority.certificate)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(pair.key + pair.certificate)
        file.flush()
        found.load_cert_chain(file.name)
    return found


def test_a_member_is_asked_over_tls() -> None:
    """By the name in its certificate; without one of its authority nobody is answered."""
    own, other = (
        create_authority(name, now=datetime.now(tz=UTC), days=1) for name in ("own", "other")
    )
    with member(SERVING, server(own)) as port:

        def asked(tls: ssl.SSLContext | None, host: str = HOST) -> str:
            return mode("127.0.0.1", MemberAccess(port=port, tls=tls, host=host))

        operator = context(own, "operator", own)
        assert asked(operator) == "leader"
        assert asked(operator, "another.default.svc") == ""
        assert asked(context(own, "operator", other)) == ""
        assert asked(context(other, "operator", own)) == ""
        assert asked(None) == ""


def test_a_handshake_has_no_longer_than_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that is connected to and says nothing has no mode."""
    monkeypatch.setattr("barnabas_operator.ensemble.TIMEOUT_S", 0.1)
    authority = create_authority("own", now=datetime.now(tz=UTC), days=1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tls = context(authority, "operator", authority)
        assert (
            mode("127.0.0.1", MemberAccess(port=silent.getsockname()[1], tls=tls, host=HOST)) == ""
        )


def test_an_operator_with_many_connections_asks_over_tls() -> None:
    """Descriptors beyond 1024, which select() refuses: those of a few hundred clusters."""
    authority = create_authority("own", now=datetime.now(tz=UTC), days=1)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack, member(SERVING, server(authority)) as port:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(2048, limits[0]), limits[1]))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        while (taken := os.open(os.devnull, os.O_RDONLY)) < 1024:
            stack.callback(os.close, taken)
        stack.callback(os.close, taken)
        tls = context(authority, "operator", authority)
        assert mode("127.0.0.1", MemberAccess(port=port, tls=tls, host=HOST)) == "leader"
