"""Access to the admin port: tokens, certificates, TLS, and what is open to probes."""

from __future__ import annotations

import datetime as dt
import logging
import socket
import ssl
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import pytest

from barnabas_broker.security import resumed_sessions
from barnabas_broker.security.admin_access import AdminAccess
from barnabas_broker.security.stores import StoreError
from barnabas_broker.server.metrics import http_thread
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process.startup import StartupError
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.server.running import running_node
from tests.oracle.certificates import DAYS, Certificate
from tests.waiting import ANSWER, seconds, wait_for

TOKEN = "0123456789abcdef0123456789abcdef"
NEXT = "fedcba9876543210fedcba9876543210"
AUTHORITY = Certificate("authority")
OTHERS = Certificate("another authority")
GUARDED = ["/metrics", "/recovery", "/restart-check", "/in-sync", "/leaderless-partitions", "/led"]


def files(directory: Path) -> dict[str, str]:
    """The settings of a port with a token, TLS and an authority of clients, and its files."""
    (directory / "token").write_text(f"{TOKEN}\n")
    Certificate("broker", AUTHORITY, host="127.0.0.1").write_pem(directory / "broker.pem")
    AUTHORITY.write_trust(directory / "authority.pem")
    Certificate("operator", AUTHORITY).write_pem(directory / "operator.pem")
    Certificate("stranger", OTHERS).write_pem(directory / "stranger.pem")
    return {
        "barnabas.admin.listener": "127.0.0.1:0",
        "barnabas.admin.token.file": str(directory / "token"),
        "barnabas.admin.ssl.keystore.location": str(directory / "broker.pem"),
        "barnabas.admin.ssl.truststore.location": str(directory / "authority.pem"),
    }


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[BrokerServer]:
    """A broker whose admin port has all of it."""
    with running_node(tmp_path / "data", files(tmp_path)) as node:
        yield node


def trusting(directory: Path, identity: str = "") -> ssl.SSLContext:
    """A client that trusts the authority, and shows a certificate if one is named."""
    context = ssl.create_default_context(cafile=str(directory / "authority.pem"))
    if identity:
        context.load_cert_chain(directory / identity)
    return context


def ask(
    node: BrokerServer, path: str, context: ssl.SSLContext, authorization: str = ""
) -> tuple[int, str, Mapping[str, str]]:
    """Status, body and headers of an answer."""
    assert node.admin is not None
    request = urllib.request.Request(f"{node.admin.url}{path}")
    if authorization:
        request.add_header("Authorization", authorization)
    try:
        with urllib.request.urlopen(request, timeout=seconds(ANSWER), context=context) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode(), dict(refused.headers)


def status(node: BrokerServer, context: ssl.SSLContext, authorization: str = "") -> int:
    """Of a path that is guarded."""
    return ask(node, "/in-sync", context, authorization)[0]


def test_only_probes_are_served_without_a_token(secured: BrokerServer, tmp_path: Path) -> None:
    """Probes are answered; whatever tells more is not, nor which paths there are."""
    anybody = trusting(tmp_path)
    assert ask(secured, "/live", anybody)[:2] == (200, "live\n")
    wait_for("readiness", lambda: ask(secured, "/ready", anybody), until=lambda it: it[0] == 200)
    for path in [*GUARDED, "/unknown", "/live/", "//metrics", "/Metrics"]:
        code, body, headers = ask(secured, path, anybody)
        assert code == 401, path
        assert headers["WWW-Authenticate"] == 'Bearer realm="barnabas"'
        assert "metrics" not in body


def test_the_unready_reason_requires_authorization(
    secured: BrokerServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names topics, directories and errors."""
    assert secured.admin is not None
    monkeypatch.setattr(secured.admin.server, "_unready", lambda: "loading secret-topic-3")
    code, body, _ = ask(secured, "/ready", trusting(tmp_path))
    assert (code, "secret-topic" in body) == (503, False)
    code, body, _ = ask(secured, "/ready", trusting(tmp_path), f"Bearer {TOKEN}")
    assert (code, body) == (503, "loading secret-topic-3\n")


def test_tokens_and_what_looks_like_them(
    secured: BrokerServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The whole token, in the scheme Bearer; a wrong one is logged without itself."""
    anybody = trusting(tmp_path)
    for right in (f"Bearer {TOKEN}", f"bearer  {TOKEN} "):
        assert status(secured, anybody, right) == 200, right
    with caplog.at_level(logging.WARNING):
        for wrong in (
            f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer ", f"Bearer {TOKEN[:-1]}",
            f"Bearer {TOKEN}0", f"Bearer {TOKEN.upper()}", f"Bearer {TOKEN}\xe9",
        ):  # fmt: skip
            assert status(secured, anybody, wrong) == 401, wrong
    assert "Admin port refused a wrong bearer token" in caplog.text
    assert TOKEN[:-1] not in caplog.text


def test_certificates_in_place_of_a_token(secured: BrokerServer, tmp_path: Path) -> None:
    """One that the trust store's authority has signed; one of others ends the connection."""
    assert status(secured, trusting(tmp_path, "operator.pem")) == 200
    with pytest.raises((URLError, ConnectionError, ssl.SSLError)):
        status(secured, trusting(tmp_path, "stranger.pem"), f"Bearer {TOKEN}")


def test_a_session_does_not_outlive_its_certificate_at_the_port(
    secured: BrokerServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS 1.2 resumes a session by its id without verifying the client's certificate again."""
    context = trusting(tmp_path, "operator.pem")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    connected = partial(connection, secured, context)

    def answer(tls: ssl.SSLSocket) -> bytes:
        assert tls.session_reused
        tls.sendall(b"GET /in-sync HTTP/1.0\r\n\r\n")
        return tls.recv(100).split()[1]

    with connected(None) as first:
        with connected(first.session) as again:
            assert answer(again) == b"200"
        later_s = time.time() + dt.timedelta(days=DAYS).total_seconds()
        monkeypatch.setattr(http_thread, "time", SimpleNamespace(time=lambda: later_s))
        with connected(first.session) as late:
            assert answer(late) == b"401"


def connection(
    node: BrokerServer, context: ssl.SSLContext, session: ssl.SSLSession | None
) -> ssl.SSLSocket:
    """A connection to the port, of an earlier session if there is one."""
    assert node.admin is not None
    address = urlsplit(node.admin.url)
    host, port = str(address.hostname), address.port or 0
    plain = socket.create_connection((host, port), seconds(ANSWER))
    return context.wrap_socket(plain, server_hostname=host, session=session)


def test_tls_sessions_that_are_kept_are_bounded_at_the_port(
    secured: BrokerServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a listener: the port has another context then."""
    context = trusting(tmp_path, "operator.pem")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert secured.admin is not None
    access = secured.admin.server._access
    before = access.context
    monkeypatch.setattr(resumed_sessions, "SESSIONS_MAX", 3)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(connection(secured, context, None))
        wait_for("another context", lambda: access.context is not before)
    assert status(secured, context) == 200


def test_old_versions_and_plain_text(secured: BrokerServer, tmp_path: Path) -> None:
    """TLS 1.2 is the least, and a request in plain text gets no answer."""
    assert secured.admin is not None
    address = ("127.0.0.1", secured.admin.server.server_port)
    with socket.create_connection(address, timeout=seconds(ANSWER)) as plain:
        plain.sendall(f"GET /in-sync HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        try:
            assert b"HTTP" not in plain.recv(100)
        except ConnectionError:
            pass
    old = trusting(tmp_path)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((URLError, ConnectionError)):
        status(secured, old)


def test_tokens_and_certificates_are_replaced_while_the_port_serves(
    secured: BrokerServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Both tokens count during a change; the old one ends; a file that is wrong changes nothing."""
    anybody = trusting(tmp_path)
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n{NEXT}\n")
    new, old = f"Bearer {NEXT}", f"Bearer {TOKEN}"
    wait_for("the new token", lambda: status(secured, anybody, new), until=lambda it: it == 200)
    assert status(secured, anybody, old) == 200
    token.write_text(f"{NEXT}\n")
    wait_for("the old token's end", lambda: status(secured, anybody, old), until=lambda c: c == 401)
    with caplog.at_level(logging.ERROR):
        token.write_text("short\n")
        wait_for("the error", lambda: caplog.text, until=lambda it: "token 1 has fewer" in it)
    assert status(secured, anybody, new) == 200

    OTHERS.write_trust(tmp_path / "others.pem")
    Certificate("broker", OTHERS, host="127.0.0.1").write_pem(tmp_path / "broker.pem")
    renewed = ssl.create_default_context(cafile=str(tmp_path / "others.pem"))
    token.write_text(f"{NEXT}\n")

    def served(authorization: str = "") -> bool:
        try:
            return status(secured, renewed, authorization) == 200
        except OSError:  # A certificate of the one that counts no more ends the connection.
            return False

    wait_for("the new certificate", lambda: served(new), until=bool)
    (tmp_path / "authority.pem").write_bytes(OTHERS.pem)
    renewed.load_cert_chain(tmp_path / "stranger.pem")
    wait_for("the new authority", served, until=bool)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("token", "", "from 1 to 100 tokens are needed"),
        ("token", "short", "token 1 has fewer than 16 characters"),
        ("token", f"{TOKEN}\nwith blanks in the middle", "token 2 is not of printable ASCII"),
        ("token", f"{TOKEN}\n" * 101, "from 1 to 100 tokens are needed"),
        ("broker.pem", "nothing", "it does not hold a private key"),
        ("authority.pem", "nothing", "there is no certificate in it"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, name: str, content: str, reason: str) -> None:
    """A broker that cannot protect its port does not start."""
    given = files(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(StoreError, match=reason) as refused:
        AdminAccess(BrokerSettings.from_mapping(given), monotonic_s=time.monotonic)
    assert TOKEN not in str(refused.value)
    with pytest.raises(StartupError, match=reason), running_node(tmp_path / "data", given):
        pass


def test_certificates_without_tls(tmp_path: Path) -> None:
    """A trust store alone protects nothing, and is refused."""
    given = files(tmp_path)
    del given["barnabas.admin.ssl.keystore.location"]
    with pytest.raises(StoreError, match=r"needs barnabas.admin.ssl.keystore.location"):
        AdminAccess(BrokerSettings.from_mapping(given), monotonic_s=time.monotonic)


def test_an_open_admin_port_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Unless it is on loopback, or asks for a token."""
    given = files(tmp_path)
    for listener, settings, warned in (
        ("0.0.0.0:0", {}, True),
        ("127.0.0.1:0", {}, False),
        ("localhost:0", {}, False),
        ("0.0.0.0:0", given, False),
    ):
        caplog.clear()
        with running_node(tmp_path / "data", settings | {"barnabas.admin.listener": listener}):
            assert ("answers every client that reaches it" in caplog.text) is warned, listener
