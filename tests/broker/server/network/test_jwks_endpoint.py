"""Bearer tokens on listeners, with the keys of an identity provider: fetched, kept, and renewed."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.security.bearer_settings import UNSECURED_HANDLER, KeySource
from barnabas_broker.security.jwks import BYTES_MAX, KeySetError
from barnabas_broker.security.sasl_settings import OAUTHBEARER_MODULE
from barnabas_broker.security.stores import StoreError
from barnabas_broker.server.network.jwks_endpoint import FileKeys, JwksEndpoint
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process.startup import StartupError
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas_kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.server.network.http_server import Answering, HttpServer
from tests.broker.server.network.test_sasl_authenticator import connect, principals
from tests.broker.server.running import Wire, running_node
from tests.oracle.certificates import Certificate
from tests.oracle.tokens import Signer, first_message, key_set, sound_claims, unsecured
from tests.waiting import wait_for

SIGNER, NEXT = Signer("first", "ES256"), Signer("next", "ES256")
URL = "sasl.oauthbearer.jwks.endpoint.url"
INVALID = b'{"status":"invalid_token"}'


class Provider:
    """An identity provider: answers with what it is told to."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.answer: tuple[int, bytes] = (200, key_set(SIGNER))
        self.location = ""
        self.asked = 0
        provider = self

        class Handler(Answering):
            def get(self) -> None:
                provider.asked += 1
                self.answer(*provider.answer, provider.location)

        self._server = HttpServer(Handler, "/keys", context)
        self.url = self._server.url

    def __enter__(self) -> Provider:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """The provider of the listener HTTP."""
    with Provider() as started:
        yield started


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys of the listener FILE."""
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    path.write_bytes(key_set(SIGNER))
    return path


@pytest.fixture(scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, provider: Provider, key_file: Path
) -> Iterator[BrokerServer]:
    """A broker with keys of a provider, of a file, and a listener that believes everybody."""
    names = ("HTTP", "FILE", "UNSECURED", "LIMITED")
    unsecured_too = ("unsecured", "limited")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0," + ",".join(f"{it}://127.0.0.1:0" for it in names),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,"
        + ",".join(f"{it}:SASL_PLAINTEXT" for it in names),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "connection.failed.authentication.delay.ms": "1",
        f"listener.name.http.{URL}": provider.url,
        f"listener.name.file.oauthbearer.{URL}": key_file.as_uri(),
        "listener.name.limited.connections.max.reauth.ms": "60000",
        **{
            f"listener.name.{name}.oauthbearer.sasl.server.callback.handler.class": (
                UNSECURED_HANDLER
            )
            for name in unsecured_too
        },
        **{
            f"listener.name.{name}.oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;"
            for name in unsecured_too
        },
    }
    with running_node(tmp_path_factory.mktemp("data"), settings) as started:
        yield started


def present(wire: Wire, token: str, **message: str) -> Any:
    """The response to a token."""
    handshake = wire.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    assert handshake.error_code == ErrorCode.NONE
    return wire.ask(SaslAuthenticateRequest(auth_bytes=first_message(token, **message)), 2)


def accepted(node: BrokerServer, listener: str, token: str) -> bool:
    """Whether a token opens a connection."""
    with connect(node, listener) as wire:
        response = present(wire, token)
        assert bytes(response.auth_bytes) in (b"", INVALID)
        return not response.auth_bytes


def is_over(wire: Wire) -> bool:
    """Whether the session has expired: then its next request is not served."""
    wire.send(MetadataRequest(topics=None), 9)
    return not wire.receive_frame()


@pytest.mark.parametrize("listener", ["HTTP", "FILE"])
def test_a_signed_token(node: BrokerServer, listener: str) -> None:
    """The client is the token's subject, as long as the token says."""
    token = SIGNER.token(f"alice {listener}")
    wait_for("the keys", lambda: accepted(node, listener, token))
    with connect(node, listener) as wire:
        response = present(wire, token, authzid=f"alice {listener}", extensions="traceId=7\x01")
        assert response.error_code == ErrorCode.NONE
        assert 3_000_000 < response.session_lifetime_ms <= 3_600_000
        assert wire.ask(MetadataRequest(topics=None), 9).brokers
        assert f"User:alice {listener}" in principals(node)


def test_a_refused_token(node: BrokerServer, caplog: pytest.LogCaptureFixture) -> None:
    """The client is told by JSON first; behind its acknowledgement the connection ends."""
    token = SIGNER.token(exp=1)
    with connect(node, "FILE") as wire:
        response = present(wire, token)
        assert (response.error_code, bytes(response.auth_bytes)) == (ErrorCode.NONE, INVALID)
        last = wire.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
        assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert last.error_message == INVALID.decode()
        assert wire.closed_by_broker()
    for part in token.split("."):
        assert part not in caplog.text


def test_another_user(node: BrokerServer) -> None:
    """A token is nobody else's, neither at first nor when the client authenticates again."""
    with connect(node, "FILE") as wire:
        assert present(wire, SIGNER.token(), authzid="bob").error_code
        assert wire.closed_by_broker()
    with connect(node, "FILE") as wire:
        assert present(wire, SIGNER.token()).error_code == ErrorCode.NONE
        assert present(wire, SIGNER.token()).error_code == ErrorCode.NONE
    with connect(node, "FILE") as wire:
        assert present(wire, SIGNER.token()).error_code == ErrorCode.NONE
        again = present(wire, SIGNER.token("bob"))
        assert again.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert wire.closed_by_broker()


def test_a_session_ends_with_its_token(node: BrokerServer) -> None:
    """Also where the listener sets no limit; where it does, the shorter one counts."""
    with connect(node, "UNSECURED") as wire:
        now = time.time()
        response = present(wire, unsecured({"sub": "bob", "iat": now - 9, "exp": now + 0.2}))
        assert 0 < response.session_lifetime_ms <= 200
        wait_for("the end of the session", lambda: is_over(wire))
    with connect(node, "LIMITED") as wire:
        assert present(wire, unsecured(sound_claims())).session_lifetime_ms == 60_000


def test_unsecured_tokens(node: BrokerServer) -> None:
    """Only the listener that asks for them believes them."""
    token = unsecured(sound_claims("bob"))
    assert accepted(node, "UNSECURED", token)
    assert not accepted(node, "FILE", token)
    assert not accepted(node, "HTTP", token)
    assert not accepted(node, "UNSECURED", SIGNER.token())


def test_a_changed_key_file(
    node: BrokerServer, key_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its keys count within seconds; a file that cannot be used changes nothing."""
    (key_file.parent / "new").write_bytes(key_set(NEXT))
    (key_file.parent / "new").replace(key_file)
    wait_for("the new key", lambda: accepted(node, "FILE", NEXT.token()))
    assert not accepted(node, "FILE", SIGNER.token())
    key_file.write_bytes(b"no keys")
    kept = "Listener FILE keeps its earlier TLS and SASL settings"
    wait_for("the log line", lambda: caplog.text, until=lambda text: kept in text)
    assert accepted(node, "FILE", NEXT.token())
    key_file.write_bytes(key_set(SIGNER))
    wait_for("the first key", lambda: accepted(node, "FILE", SIGNER.token()))


def test_a_provider_that_signs_with_a_new_key(
    node: BrokerServer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first token of an unknown key has the keys fetched again, whoever invented it."""
    wait_for("the first keys", lambda: accepted(node, "HTTP", SIGNER.token()))
    interval = "barnabas_broker.server.network.jwks_endpoint.MISSING_KEY_INTERVAL_S"
    asked = provider.asked
    provider.answer = (200, key_set(NEXT, SIGNER))
    monkeypatch.setattr(interval, float("inf"))
    assert not accepted(node, "HTTP", NEXT.token())
    assert provider.asked == asked
    monkeypatch.setattr(interval, 0.0)
    wait_for("the new key", lambda: accepted(node, "HTTP", NEXT.token()))
    assert accepted(node, "HTTP", SIGNER.token())


def test_a_provider_that_is_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The broker serves, refuses tokens, and asks again until there are keys."""
    with Provider() as provider:
        provider.answer = (503, b"")
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "connection.failed.authentication.delay.ms": "1",
            URL: provider.url,
        }
        with running_node(tmp_path, settings) as node:
            failed = f"Failed to fetch the keys of {provider.url}"
            wait_for("the log line", lambda: caplog.text, until=lambda text: failed in text)
            assert not accepted(node, "SASL", SIGNER.token())
            provider.answer = (200, key_set(SIGNER))
            wait_for("the keys", lambda: accepted(node, "SASL", SIGNER.token()))


def source(url: str, **trust: str) -> KeySource:
    """Keys at that address."""
    return KeySource(url, 1000, 1, 1, {name.replace("_", "."): it for name, it in trust.items()})


@pytest.mark.parametrize(
    ("answer", "location", "error"),
    [
        ((404, b""), "", OSError),
        ((200, b"no keys"), "", KeySetError),
        ((200, b" " * (BYTES_MAX + 1)), "", ValueError),
        ((302, b""), "https://localhost:1/keys", OSError),
        ((302, b""), "file:///etc/passwd", OSError),
    ],
)
def test_answers_without_keys(
    answer: tuple[int, bytes], location: str, error: type[Exception]
) -> None:
    """Errors, what is no key set or too large, and redirections to another scheme."""
    with Provider() as provider:
        provider.answer, provider.location = answer, location
        with pytest.raises(error):
            JwksEndpoint(source(provider.url)).fetch()
        assert provider.asked == 1


def test_redirections_are_followed() -> None:
    """Within the scheme."""
    with Provider() as first, Provider() as second:
        first.answer, first.location = (302, b""), second.url
        assert [key.id for key in JwksEndpoint(source(first.url)).fetch().keys] == ["first"]


def test_a_provider_over_tls(tmp_path: Path) -> None:
    """Its certificate is checked by the login module's trust store, or by the system's."""
    authority = Certificate("authority")
    trust = authority.write_trust(tmp_path / "trust.pem")
    store = Certificate("provider", authority, host="localhost").write_pem(tmp_path / "own.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(store)
    with Provider(context) as provider:
        for trusted in (
            {"ssl_truststore_location": str(trust)},
            {"ssl_truststore_certificates": trust.read_text()},
        ):
            assert JwksEndpoint(source(provider.url, **trusted)).fetch().keys
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            JwksEndpoint(source(provider.url)).fetch()
        with pytest.raises(StoreError):
            JwksEndpoint(source(provider.url, ssl_truststore_location="/none.pem"))


def test_files_without_keys(tmp_path: Path) -> None:
    """A broker does not start with one."""
    with pytest.raises(StoreError, match="No such file"):
        FileKeys(tmp_path / "none")
    (tmp_path / "keys").write_bytes(b"{}")
    with pytest.raises(StoreError, match="list called keys"):
        FileKeys(tmp_path / "keys")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        URL: (tmp_path / "keys").as_uri(),
    }
    with (
        pytest.raises(StartupError, match="list called keys"),
        running_node(tmp_path / "data", settings),
    ):
        pass
