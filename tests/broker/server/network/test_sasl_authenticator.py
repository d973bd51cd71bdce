"""Listeners with SASL and TLS: a running broker, and clients that do it right and wrong."""

import asyncio
import datetime as dt
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas_broker.security import resumed_sessions
from barnabas_broker.security.sasl_settings import PLAIN_MODULE
from barnabas_broker.server.network import listener_security
from barnabas_broker.server.network.listener import TLS_HANDSHAKE_TIMEOUT_S
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.server.transport.counters import Cause
from barnabas_broker.server.transport.tls_outbound import CHUNK_BYTES, TlsOutbound
from barnabas_kafka.client import Scram
from barnabas_kafka.client.sasl import salted_password
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas_kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, fetch_request, pass_time, running_node
from tests.broker.server.test_dynamic_settings import alter
from tests.oracle.certificates import DAYS, Certificate
from tests.waiting import ANSWER, seconds, wait_for

VERSIONS = ApiVersionsRequest(client_software_name="wire", client_software_version="1")
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
SHA_256, SHA_512 = 1, 2
RECEIVE_MAX = 2000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The broker's key store, and a trust store with its authority."""
    directory = tmp_path_factory.mktemp("certificates")
    authority = Certificate("authority")
    authority.write_trust(directory / "trust.pem")
    Certificate("broker", authority, host="localhost").write_pem(directory / "broker.pem")
    Certificate("alice", authority).write_pem(directory / "alice.pem")
    return directory


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[BrokerServer]:
    """A broker with a listener of each protocol; sessions end on REAUTH."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0,REAUTH://127.0.0.1:0,"
        "TLS://127.0.0.1:0,BOTH://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,"
        "REAUTH:SASL_PLAINTEXT,TLS:SSL,BOTH:SASL_SSL",
        "password.encoder.secret": "of the broker",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.server.max.receive.size": str(RECEIVE_MAX),
        "connection.failed.authentication.delay.ms": "1",
        "listener.name.reauth.connections.max.reauth.ms": "600000",
        "connections.max.idle.ms": "3600000",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "ssl.truststore.location": str(certificates / "trust.pem"),
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U",
        **{
            f"listener.name.{name}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required "
            'user_alice="wonder" user_bob="builder";'
            for name in ("sasl", "reauth", "both")
        },
    }
    with running_node(tmp_path_factory.mktemp("data"), settings) as started:
        yield started


def connect(node: BrokerServer, listener: str) -> Wire:
    """A client of one listener."""
    return Wire(next(each.port for each in node.listeners if each.name == listener))


@pytest.fixture
def wire(node: BrokerServer) -> Iterator[Wire]:
    """A client of the SASL listener."""
    with connect(node, "SASL") as connected:
        yield connected


@pytest.fixture
def admin(node: BrokerServer) -> Iterator[Wire]:
    """A client of the plaintext listener."""
    with connect(node, "PLAINTEXT") as connected:
        yield connected


def log_in(wire: Wire, user: str = "alice", password: str = "wonder") -> Any:
    """Authenticate with PLAIN; the last response."""
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.NONE
    token = f"\0{user}\0{password}".encode()
    return wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2)


def principals(node: BrokerServer) -> set[str]:
    """Whom the connections of all listeners are known as."""
    return {str(session.caller.principal) for it in node.listeners for session in it.sessions}


def test_authenticated_with_plain(node: BrokerServer, wire: Wire) -> None:
    """Versions, handshake, one token; then requests are served, for the user."""
    assert wire.ask(VERSIONS, 3).error_code == ErrorCode.NONE
    response = log_in(wire)
    assert (response.error_code, response.session_lifetime_ms) == (ErrorCode.NONE, 0)
    assert wire.ask(MetadataRequest(topics=None), 9).brokers
    assert "User:alice" in principals(node)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_authenticated_with_scram(
    node: BrokerServer, admin: Wire, wire: Wire, mechanism: Any
) -> None:
    """A credential counts from the response on, and its absence, too."""
    number = SHA_256 if mechanism == "SCRAM-SHA-256" else SHA_512
    user = f"carol {number}"
    salted = salted_password(mechanism, "pencil", b"salt", 4096)
    upsertion = ScramCredentialUpsertion(
        name=user, mechanism=number, iterations=4096, salt=b"salt", salted_password=salted
    )
    altered = admin.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
    assert [(it.user, it.error_code) for it in altered.results] == [(user, 0)]
    assert scram(wire, user, "pencil", mechanism)
    assert f"User:{user}" in principals(node)
    with connect(node, "SASL") as other:
        assert not scram(other, user, "pen", mechanism)
    deletion = ScramCredentialDeletion(name=user, mechanism=number)
    assert admin.ask(AlterUserScramCredentialsRequest(deletions=[deletion]), 0).results
    with connect(node, "SASL") as other:
        assert not scram(other, user, "pencil", mechanism)
    assert wire.ask(MetadataRequest(topics=None), 9).brokers


def scram(wire: Wire, user: str, password: str, mechanism: Any) -> bool:
    """Whether the exchange succeeds, on both sides."""
    assert wire.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == ErrorCode.NONE
    client = Scram(user, password, mechanism).start("nonce")
    token: bytes | None = client.first()
    while token is not None:
        response = wire.ask(SaslAuthenticateRequest(auth_bytes=token), 1)
        if response.error_code:
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert response.error_message == (
                "Authentication failed during authentication due to invalid credentials with SASL "
                f"mechanism {mechanism}"
            )
            assert wire.closed_by_broker()
            return False
        token = client.answer(response.auth_bytes)
    return client.done


def test_bare_tokens_after_version_0(node: BrokerServer, wire: Wire) -> None:
    """What clients before Kafka 1.0 send."""
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).mechanisms == MECHANISMS
    token = b"\0bob\0builder"
    wire.socket.sendall(struct.pack(">i", len(token)) + token)
    assert wire.socket.recv(4) == bytes(4)
    assert wire.ask(MetadataRequest(topics=None), 1).brokers
    assert "User:bob" in principals(node)


def test_a_wrong_bare_token_ends_the_connection(node: BrokerServer, wire: Wire) -> None:
    """There is no response that could say why."""
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    token = b"\0bob\0wrong"
    wire.socket.sendall(struct.pack(">i", len(token)) + token)
    assert wire.closed_by_broker()


def test_a_wrong_password_is_refused_and_counted(node: BrokerServer, wire: Wire) -> None:
    """With Kafka's words, then the connection ends; what was sent behind it is not served."""
    failures = node.socket_server.counters.totals[Cause.FAILED_AUTHENTICATION]
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    frames = [
        wire.frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0x"), 1),
        wire.frame(MetadataRequest(topics=None), 9),
        wire.frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonder"), 1),
    ]
    wire.socket.sendall(b"".join(frames))
    _, response = wire.receive(SaslAuthenticateResponse, 1)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "Authentication failed: Invalid username or password"
    assert wire.closed_by_broker()
    assert node.socket_server.counters.totals[Cause.FAILED_AUTHENTICATION] == failures + 1


def test_a_mechanism_that_is_not_offered(wire: Wire) -> None:
    """Those that are offered are named."""
    response = wire.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == MECHANISMS
    assert wire.closed_by_broker()


def test_versions_are_asked_for_again_in_one_that_is_served(wire: Wire) -> None:
    """franz-go begins with the newest it knows, which Kafka 3.9 does not have (KIP-511)."""
    wire.send(VERSIONS, 5)
    _, reported = wire.receive(ApiVersionsResponse, 0)
    assert reported.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert wire.ask(VERSIONS, 4).error_code == ErrorCode.NONE
    handshake = wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert handshake.error_code == ErrorCode.NONE


OUT_OF_SEQUENCE: list[list[tuple[Any, int]]] = [
    [(MetadataRequest(topics=None), 9)],
    [(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonder"), 1)],
    [(VERSIONS, 3), (VERSIONS, 3)],
    [(SaslHandshakeRequest(mechanism="PLAIN"), 1), (MetadataRequest(topics=None), 9)],
    [(SaslHandshakeRequest(mechanism="PLAIN"), 1), (VERSIONS, 3)],
    [(SaslHandshakeRequest(mechanism="PLAIN"), 1), (SaslHandshakeRequest(mechanism="PLAIN"), 1)],
]


@pytest.mark.parametrize("requests", OUT_OF_SEQUENCE)
def test_requests_out_of_sequence(wire: Wire, requests: list[tuple[Any, int]]) -> None:
    """The connection ends, and nothing is served."""
    *served, last = requests
    for request, version in served:
        assert wire.ask(request, version).error_code == ErrorCode.NONE
    wire.send(*last)
    assert wire.closed_by_broker()


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", RECEIVE_MAX + 1),
        struct.pack(">i", 4) + bytes(4),
        struct.pack(">ihhi", 8, 18, 0, 1)[:-1] + b"\1\0\0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        struct.pack(">i", 9) + b"\x60\x82\1\2\3\4\5\6\7",
    ],
    ids=["a large frame", "no header", "no client id", "TLS", "GSSAPI of Kafka 0.9"],
)
def test_malformed_sasl_frames_close_the_connection(wire: Wire, data: bytes) -> None:
    """The connection ends; it holds no more than the largest frame of SASL."""
    wire.socket.sendall(data)
    assert wire.closed_by_broker()


def test_authenticated_again(node: BrokerServer) -> None:
    """KIP-368: the session's lifetime is told, and the same user may begin another."""
    with connect(node, "REAUTH") as wire:
        assert log_in(wire).session_lifetime_ms == 600_000
        assert log_in(wire).session_lifetime_ms == 600_000
        assert wire.ask(MetadataRequest(topics=None), 9).brokers
        early = wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert early.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_revoked_password_is_not_authenticated_again(node: BrokerServer, admin: Wire) -> None:
    """What the listener goes by counts when a client authenticates again."""
    security = next(each.security for each in node.listeners if each.name == "REAUTH")
    assert security is not None

    def change(config: str | None, password: str) -> None:
        name = "listener.name.reauth.plain.sasl.jaas.config"
        assert alter(admin, name, config, of="0") == ErrorCode.NONE
        wait_for(
            "the password of alice",
            lambda: security.sasl and security.sasl.settings.passwords["alice"],
            until=lambda found: found == password,
        )

    with connect(node, "REAUTH") as wire:
        assert log_in(wire).error_code == ErrorCode.NONE
        change(f'{PLAIN_MODULE} required user_bob="builder" user_alice="changed";', "changed")
        assert log_in(wire).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert wire.closed_by_broker()
    change(None, "wonder")


def test_sessions_expire(node: BrokerServer) -> None:
    """Who sends anything then but another authentication is disconnected, as by Kafka."""
    with connect(node, "REAUTH") as wire, connect(node, "REAUTH") as other:
        for each in (wire, other):
            assert log_in(each).session_lifetime_ms == 600_000
        pass_time(node, 601)
        wait_for("expired sessions", lambda: states(node), until=lambda it: it == ["EXPIRED"] * 2)
        wire.send(MetadataRequest(topics=None), 9)
        assert wire.closed_by_broker()
        assert log_in(other).session_lifetime_ms == 600_000
        assert other.ask(MetadataRequest(topics=None), 9).brokers


def states(node: BrokerServer) -> list[str]:
    """Where the clients of REAUTH are in their authentication."""
    found = [session._authenticator for it in node.listeners if it.name == "REAUTH"
             for session in it.sessions]  # fmt: skip
    return [each._state.name for each in found if each is not None]


def test_a_session_that_expires_while_a_request_waits(node: BrokerServer, admin: Wire) -> None:
    """The request is answered, and the authentication behind it is in time."""
    admin.create_topic("waits")
    with connect(node, "REAUTH") as wire:
        assert log_in(wire).session_lifetime_ms == 600_000
        wire.send(fetch_request([("waits", 0, 0)], max_wait_ms=1_000_000), 12)
        wire.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        wait_for("a request that waits", lambda: node_waits(node, "REAUTH"))
        pass_time(node, 601)
        wait_for("an expired session", lambda: states(node), until=lambda it: it == ["EXPIRED"])
        assert admin.produce("waits", build_batch([(1, None, b"v", ())])).error_code == 0
        assert wire.receive(FetchResponse, 12)[1].error_code == ErrorCode.NONE
        assert wire.receive(SaslHandshakeResponse, 1)[1].error_code == ErrorCode.NONE
        token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonder")
        assert wire.ask(token, 2).session_lifetime_ms == 600_000


def node_waits(node: BrokerServer, listener: str) -> bool:
    """Whether a client of the listener waits for an answer."""
    found = next(each for each in node.listeners if each.name == listener)
    return any(session.parked_fd is not None for session in found.sessions)


def test_silence_ends_the_connection(node: BrokerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client has a limited time to authenticate."""
    monkeypatch.setattr(
        "barnabas_broker.server.network.sasl_authenticator.AUTHENTICATION_TIMEOUT_S", 0.01
    )
    with connect(node, "SASL") as wire:
        assert wire.closed_by_broker()


@pytest.mark.parametrize(("user", "password"), [("bob", "builder"), ("alice", "wrong")])
def test_another_user_is_not_authenticated_again(
    node: BrokerServer, user: str, password: str
) -> None:
    """Nor is a wrong password: the connection ends."""
    with connect(node, "REAUTH") as wire:
        log_in(wire)
        response = log_in(wire, user, password)
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert wire.closed_by_broker()


def test_requests_of_sasl_elsewhere(admin: Wire) -> None:
    """They are out of place on a listener without, and behind an authentication."""
    handshake = admin.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert handshake.error_code == ErrorCode.ILLEGAL_SASL_STATE
    authenticate = admin.ask(SaslAuthenticateRequest(auth_bytes=b""), 2)
    assert authenticate.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_credentials_are_described_without_secrets(admin: Wire) -> None:
    """Mechanisms and iterations; what does not exist, and who is named twice, is refused."""
    upsertions = [
        ScramCredentialUpsertion(
            name="dora", mechanism=SHA_512, iterations=8192, salt=b"s", salted_password=b"p"
        )
    ]
    admin.ask(AlterUserScramCredentialsRequest(upsertions=upsertions), 0)
    everyone = admin.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    assert [
        (it.user, [(info.mechanism, info.iterations) for info in it.credential_infos])
        for it in everyone.results
        if it.user == "dora"
    ] == [("dora", [(SHA_512, 8192)])]
    users = [UserName(name=name) for name in ("nobody", "twice", "twice")]
    named = admin.ask(DescribeUserScramCredentialsRequest(users=users), 0)
    assert [it.error_code for it in named.results] == [
        ErrorCode.RESOURCE_NOT_FOUND,
        ErrorCode.DUPLICATE_RESOURCE,
    ]


# --- TLS


def tls_client(certificates: Path, *, key: str | None = None) -> ssl.SSLContext:
    """A client that trusts the broker's authority."""
    context = ssl.create_default_context(cafile=str(certificates / "trust.pem"))
    if key is not None:
        context.load_cert_chain(certificates / key)
    return context


def tls_connect(node: BrokerServer, context: ssl.SSLContext, listener: str = "TLS") -> Wire:
    """A client of a TLS listener."""
    wire = connect(node, listener)
    wire.socket = context.wrap_socket(wire.socket, server_hostname="localhost")
    return wire


def test_records_over_tls(node: BrokerServer, certificates: Path) -> None:
    """A batch larger than every buffer of the connection comes back as it went."""
    values = [bytes([number]) * 500_000 for number in range(6)]
    with tls_connect(node, tls_client(certificates)) as wire:
        wire.create_topic("large", max_message_bytes="10000000")
        for value in values:
            batch = build_batch([(0, None, value, ())])
            assert wire.produce("large", batch).error_code == ErrorCode.NONE
        fetched = wire.fetch("large", max_bytes=50_000_000, partition_max_bytes=50_000_000)
        data = bytes(fetched.records or b"")  # type: ignore[arg-type]
    assert [data.find(value) >= 0 for value in values] == [True] * len(values)


def test_a_large_response_is_encrypted_in_turns() -> None:
    """Converted batches come as one piece: others are served between its chunks."""
    answer = bytes(range(256)) * (5 * CHUNK_BYTES // 256 + 1)
    written: list[bytes] = []
    between: list[int] = []

    class Recording(asyncio.Transport):
        def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
            """There are none here."""

        def get_write_buffer_size(self) -> int:
            return 0

        def write(self, data: bytes | bytearray | memoryview) -> None:
            written.append(bytes(data))
            asyncio.get_running_loop().call_soon(lambda: between.append(len(written)))

    async def send() -> None:
        drained = asyncio.Event()
        outbound = TlsOutbound(
            asyncio.get_running_loop(), Recording(), on_drained=drained.set, on_broken=print
        )
        outbound.send([b"first", answer, b"last"])
        assert outbound.waiting
        assert outbound.held_bytes < len(answer)
        async with asyncio.timeout(seconds(ANSWER)):
            await drained.wait()

    asyncio.run(send())
    assert b"".join(written) == b"first" + answer + b"last"
    assert max(map(len, written)) == CHUNK_BYTES
    # What was called behind a chunk ran before the next.
    assert len(set(between)) > 5


def test_the_principal_is_the_certificates(node: BrokerServer, certificates: Path) -> None:
    """By the mapping rules; without a certificate it is ANONYMOUS."""
    with tls_connect(node, tls_client(certificates, key="alice.pem")) as wire:
        assert wire.ask(MetadataRequest(topics=None), 9).brokers
        assert "User:ALICE" in principals(node)


@pytest.mark.parametrize("listener", ["TLS", "BOTH"])
def test_a_session_does_not_outlive_its_certificate(
    node: BrokerServer, certificates: Path, monkeypatch: pytest.MonkeyPatch, listener: str
) -> None:
    """TLS 1.2 resumes a session by its id without verifying the client's certificate again."""
    context = tls_client(certificates, key="alice.pem")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with tls_connect(node, context, listener) as first, connect(node, listener) as again:
        begun = cast(ssl.SSLSocket, first.socket).session

        def resume(wire: Wire) -> None:
            resumed = context.wrap_socket(wire.socket, server_hostname="localhost", session=begun)
            assert resumed.session_reused
            wire.socket = resumed

        resume(again)
        assert again.ask(VERSIONS, 3).error_code == ErrorCode.NONE
        failures = failed_authentications(node)
        later_s = time.time() + dt.timedelta(days=DAYS).total_seconds()
        with monkeypatch.context() as patch, connect(node, listener) as late:
            patch.setattr(listener_security, "time", SimpleNamespace(time=lambda: later_s))
            resume(late)
            assert late.closed_by_broker()
        assert failed_authentications(node) == failures + 1


def test_tls_sessions_that_are_kept_are_bounded(
    node: BrokerServer, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session with its certificate takes 10 KiB for two hours, and is resumed by few clients."""
    context = tls_client(certificates, key="alice.pem")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    security = next(each for each in node.listeners if each.name == "TLS").security
    assert security is not None
    before = security.context
    monkeypatch.setattr(resumed_sessions, "SESSIONS_MAX", 3)
    with ExitStack() as stack:
        wires = [stack.enter_context(tls_connect(node, context)) for _ in range(4)]
        wait_for("another context", lambda: security.context is not before)
        wires.append(stack.enter_context(tls_connect(node, context)))
        assert all(wire.ask(MetadataRequest(topics=None), 9).brokers for wire in wires)


def test_plaintext_on_a_tls_listener(node: BrokerServer) -> None:
    """The connection ends, and is counted."""
    failures = node.socket_server.counters.totals[Cause.FAILED_AUTHENTICATION]
    with connect(node, "TLS") as wire:
        wire.send(MetadataRequest(topics=None), 9)
        assert wire.socket.recv(100)[:1] in (b"", b"\x15")  # At most a TLS alert.
    wait_for(
        "the failed handshake",
        lambda: node.socket_server.counters.totals[Cause.FAILED_AUTHENTICATION],
        until=lambda count: count == failures + 1,
    )


def failed_authentications(node: BrokerServer) -> int:
    """How many the broker has counted."""
    return node.socket_server.counters.totals[Cause.FAILED_AUTHENTICATION]


@pytest.mark.parametrize("timed_out", [True, False], ids=["too slow", "left"])
def test_a_handshake_that_takes_too_long_is_counted(node: BrokerServer, *, timed_out: bool) -> None:
    """Like one that fails; a client that leaves has not tried to authenticate."""
    failures = failed_authentications(node)
    with connect(node, "TLS") as wire:
        listener = next(each for each in node.listeners if each.name == "TLS")
        wait_for("the handshake", lambda: bool(listener._opening))
        if timed_out:
            pass_time(node, TLS_HANDSHAKE_TIMEOUT_S + 1)
            assert wire.closed_by_broker()
    wait_for("its end", lambda: not listener._opening)
    assert failed_authentications(node) == failures + timed_out


def test_a_connection_that_cannot_be_served_leaves_no_trace(
    node: BrokerServer, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails when a connection begins, its place in the limits is free again."""
    listener = next(each for each in node.listeners if each.name == "TLS")

    def counted() -> int:
        return node.socket_server.quotas.total

    before = counted()
    with monkeypatch.context() as patch:
        patch.setattr(type(listener.security), "context", property(fail))
        with connect(node, "TLS") as wire:
            assert wire.closed_by_broker()
    with monkeypatch.context() as patch:
        patch.setattr(type(listener.security), "certificate_principal", fail)
        with tls_connect(node, tls_client(certificates)) as wire:
            assert wire.closed_by_broker()
    wait_for("the end of all", counted, until=lambda count: count == before)
    with tls_connect(node, tls_client(certificates)) as wire:
        assert wire.ask(MetadataRequest(topics=None), 9).brokers


def fail(*_: object) -> None:
    """What cannot be foreseen."""
    raise RuntimeError("injected")


def test_stopping_does_not_wait_for_handshakes(tmp_path: Path, certificates: Path) -> None:
    """A client that connects and says nothing does not hold up the end of the broker."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL",
        "ssl.keystore.location": str(certificates / "broker.pem"),
    }
    with ExitStack() as stack:
        with running_node(tmp_path, settings) as stopping:
            wires = [stack.enter_context(connect(stopping, "TLS")) for _ in range(3)]
            listener = next(each for each in stopping.listeners if each.name == "TLS")
            wait_for("the handshakes", lambda: len(listener._opening), until=lambda it: it == 3)
        assert all(wire.closed_by_broker() for wire in wires)
        assert failed_authentications(stopping) == 0


def test_certificates_are_renewed_without_a_restart(
    node: BrokerServer, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A replaced file is shown to the next connection; those that exist go on.

    A file that cannot be used is logged, and the certificate before it stays.
    """
    store = certificates / "broker.pem"
    before = store.read_bytes()
    authority = Certificate("another authority")
    authority.write_trust(certificates / "other.pem")
    other = ssl.create_default_context(cafile=str(certificates / "other.pem"))

    def shown_to_other() -> bool:
        try:
            with tls_connect(node, other) as wire:
                return bool(wire.ask(MetadataRequest(topics=None), 9).brokers)
        except (ssl.SSLError, ConnectionError):
            return False

    with tls_connect(node, tls_client(certificates)) as early:
        early.ask(MetadataRequest(topics=None), 9)
        Certificate("broker", authority, host="localhost").write_pem(certificates / "new.pem")
        (certificates / "new.pem").replace(store)
        wait_for("the new certificate", shown_to_other)
        assert early.ask(MetadataRequest(topics=None), 9).brokers
        store.write_bytes(b"not a key store")
        kept = "Listener TLS keeps its earlier TLS and SASL settings"
        wait_for("the log line", lambda: caplog.text, until=lambda text: kept in text)
        assert shown_to_other()
    store.write_bytes(before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listeners": "SSL://127.0.0.1:0"}, "listener SSL: ssl.keystore.location"),
        ({"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}, "GSSAPI is not offered"),
    ],
)
def test_a_broker_that_cannot_be_secured_does_not_start(
    tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    """The first line says which listener lacks what."""
    name = settings["listeners"].partition(":")[0]
    settings = {**settings, "inter.broker.listener.name": name}
    with pytest.raises(StartupError, match=message), running_node(tmp_path, settings):
        pass
