"""Connections to other brokers with TLS and SASL: to a real broker, and to one that cheats."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.cluster.image import Endpoint
from barnabas_broker.security.client_security import ClientSecurity, client_security
from barnabas_broker.security.listener_tls import listener_tls
from barnabas_broker.security.sasl_settings import PLAIN_MODULE, SCRAM_MODULE
from barnabas_broker.server.network.token_endpoint import TokenEndpoint
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.peers.peers import PeerAuthenticationError, Peers, UnreachableError
from barnabas_kafka.client.sasl import Scram, salted_password
from barnabas_kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_kafka.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from barnabas_kafka.protocol.messages.sasl_handshake import SaslHandshakeResponse
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.listeners import SecurityProtocol
from tests.broker.server.moved_clock import MovedLoop
from tests.broker.server.peers.test_peers import ANSWER_S, receive, respond
from tests.broker.server.running import Wire, pass_time, port_of, running_node
from tests.oracle.certificates import Certificate
from tests.oracle.tokens import Signer, key_set
from tests.waiting import wait_for

SESSION_S = 600
Scenario = Callable[[Peers], Awaitable[None]]
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SIGNER = Signer("first", "ES256")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key stores of a broker and of a stranger, and the trust stores that fit them."""
    directory = tmp_path_factory.mktemp("certificates")
    for name in ("authority", "strangers"):
        authority = Certificate(name)
        authority.write_trust(directory / f"{name}-trust.pem")
        Certificate("broker", authority, host="localhost").write_pem(directory / f"{name}.pem")
    (directory / "keys.json").write_bytes(key_set(SIGNER))
    (directory / "token").write_text(SIGNER.token("broker"))
    return directory


def settings_of(stores: Path, mechanism: str = "PLAIN", authority: str = "authority") -> Any:
    """What brokers of the cluster have in common."""
    user = 'username="broker" password="secret"'
    listeners = ("SSL", "SASL_SSL", "SASL_PLAINTEXT")
    return {
        "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
        "sasl.oauthbearer.jwks.endpoint.url": (stores / "keys.json").as_uri(),
        "sasl.oauthbearer.token.endpoint.url": (stores / "token").as_uri(),
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "connections.max.reauth.ms": str(SESSION_S * 1000),
        "connection.failed.authentication.delay.ms": "1",
        "ssl.keystore.location": str(stores / f"{authority}.pem"),
        "ssl.truststore.location": str(stores / f"{authority}-trust.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
        **{
            f"listener.name.{it.lower()}.{of.lower()}.sasl.jaas.config": f"{module} required {user}"
            + (' user_broker="secret";' if of == "PLAIN" else ";")
            for it in listeners
            for of, module in zip(
                MECHANISMS, (PLAIN_MODULE, SCRAM_MODULE, SCRAM_MODULE), strict=True
            )
        },
    }


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, stores: Path) -> Iterator[BrokerServer]:
    """A broker with a listener of each protocol, which has SCRAM credentials of the user broker."""
    listeners = ",".join(f"{it.name}://127.0.0.1:0" for it in SecurityProtocol)
    settings = {"listeners": listeners, **settings_of(stores)}
    with running_node(tmp_path_factory.mktemp("data"), settings) as started:
        with Wire(port_of(started)) as admin:
            upsertions = [
                ScramCredentialUpsertion(
                    name="broker",
                    mechanism=number,
                    iterations=4096,
                    salt=b"salt",
                    salted_password=salted_password(of, "secret", b"salt", 4096),  # type: ignore[arg-type]
                )
                for number, of in enumerate(MECHANISMS[1:], 1)
            ]
            reported = admin.ask(AlterUserScramCredentialsRequest(upsertions=upsertions), 0)
            assert [it.error_code for it in reported.results] == [0]
        yield started


def security(stores: Path, protocol: SecurityProtocol, **given: str) -> ClientSecurity:
    """How another broker of the cluster connects to a listener with that protocol."""
    settings = BrokerSettings.from_mapping(settings_of(stores, **given))
    tls = listener_tls(settings, protocol.name) if protocol.tls else None
    return client_security(
        settings, protocol.name, protocol,
        tls=tls, sections={}, tokens=lambda login: TokenEndpoint(login).provide,
    )  # fmt: skip


def endpoint_of(
    node: BrokerServer, protocol: SecurityProtocol, name: str = "localhost"
) -> Endpoint:
    """Where a listener of the broker is reached."""
    (port,) = (each.port for each in node.listeners if each.name == protocol.name)
    return Endpoint(protocol.name, "127.0.0.1", port, protocol.name, server_name=name)


def tell(scenario: Scenario, endpoint: Endpoint, shown: ClientSecurity | None) -> None:
    """A scenario with that broker, whose number is 0."""
    reported(scenario, Peers(lambda _: endpoint, client_id="test", security=lambda _: shown))


def reported(
    scenario: Scenario, peers: Peers, loop: asyncio.AbstractEventLoop | None = None
) -> None:
    """Run a scenario on a loop of its own, and close the connections after it."""

    async def whole() -> None:
        try:
            await scenario(peers)
        finally:
            peers.close()

    with asyncio.Runner(loop_factory=lambda: loop or asyncio.new_event_loop()) as runner:
        runner.run(whole())


async def metadata(peers: Peers) -> MetadataResponse:
    """The answer to a request that only the authenticated may send."""
    request = MetadataRequest(topics=[])
    # The clock that tests move on is the one of its time limit, too.
    return await peers.send(0, request, MetadataResponse, timeout_s=ANSWER_S + SESSION_S)


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "OAUTHBEARER"])
@pytest.mark.parametrize("protocol", [it for it in SecurityProtocol if it.value])
def test_a_real_broker_answers(
    node: BrokerServer, stores: Path, protocol: SecurityProtocol, mechanism: str
) -> None:
    """Over every protocol and with every mechanism, as the principal of the broker."""

    async def scenario(peers: Peers) -> None:
        assert (await metadata(peers)).cluster_id == node.broker.image.cluster_id
        assert (await metadata(peers)).brokers
        principals = {str(session.caller.principal) for session in sessions(node, protocol)}
        assert principals == {"User:broker" if protocol.sasl else "User:CN=broker"}

    shown = security(stores, protocol, mechanism=mechanism)
    tell(scenario, endpoint_of(node, protocol), shown)
    wait_for("the end of the connection", lambda: sessions(node, protocol), until=lambda it: not it)


def sessions(node: BrokerServer, protocol: SecurityProtocol) -> list[Any]:
    """The connections to a listener."""
    return [each for it in node.listeners if it.name == protocol.name for each in it.sessions]


@pytest.mark.parametrize(
    ("protocol", "change", "reason"),
    [
        ("SASL_PLAINTEXT", {"password": "wrong"}, "SASL_AUTHENTICATION_FAILED: .*SCRAM-SHA-512"),
        ("SASL_PLAINTEXT", {"username": "nobody"}, "SASL_AUTHENTICATION_FAILED: .*SCRAM-SHA-512"),
    ],
)
def test_a_broker_that_is_refused(
    node: BrokerServer, stores: Path, protocol: str, change: dict[str, str], reason: str
) -> None:
    """The error says by whom, and why."""
    of = SecurityProtocol[protocol]
    shown = security(stores, of, mechanism="SCRAM-SHA-512")
    mechanism: Any = shown.mechanism
    wrong = replace(shown, mechanism=replace(mechanism, **change))
    endpoint = endpoint_of(node, of)

    async def scenario(peers: Peers) -> None:
        where = f"broker 0 at 127.0.0.1:{endpoint.port} failed authentication due to: {reason}"
        with pytest.raises(PeerAuthenticationError, match=where) as caught:
            await metadata(peers)
        assert "secret" not in str(caught.value)

    tell(scenario, endpoint, wrong)


def test_without_a_token_of_ones_own(node: BrokerServer, stores: Path) -> None:
    """Connecting fails as it does with a peer that is down; a token that is renewed ends that."""
    of = SecurityProtocol.SASL_PLAINTEXT
    token = stores / "token"
    sound = token.read_text()
    shown = security(stores, of, mechanism="OAUTHBEARER")

    async def scenario(peers: Peers) -> None:
        token.write_text(SIGNER.token("broker", exp=1))
        with pytest.raises(UnreachableError, match=r"no bearer token.*the token has expired"):
            await metadata(peers)
        token.write_text(Signer("another", "ES256").token("broker"))
        with pytest.raises(PeerAuthenticationError, match="invalid_token"):
            await metadata(peers)
        token.write_text(sound)
        assert (await metadata(peers)).brokers

    tell(scenario, endpoint_of(node, of), shown)


def test_certificates_that_are_not_trusted(node: BrokerServer, stores: Path) -> None:
    """Of another authority, of another host, and the own one by the peer."""
    of = SecurityProtocol.SASL_SSL

    async def distrusted(peers: Peers) -> None:
        with pytest.raises(PeerAuthenticationError, match=r"broker 0 .*CERTIFICATE_VERIFY_FAILED"):
            await metadata(peers)

    async def misnamed(peers: Peers) -> None:
        with pytest.raises(PeerAuthenticationError, match=r"not valid for 'elsewhere'"):
            await metadata(peers)

    async def refused(peers: Peers) -> None:
        with pytest.raises(UnreachableError, match=r"(?i)broker 0 .*(alert|reset|lost)"):
            await metadata(peers)

    async def served(peers: Peers) -> None:
        assert (await metadata(peers)).brokers

    tell(distrusted, endpoint_of(node, of), security(stores, of, authority="strangers"))
    tell(misnamed, endpoint_of(node, of, "elsewhere"), security(stores, of))
    unchecked = security(stores, of)
    assert unchecked.tls is not None
    unchecked.tls.check_hostname = False
    tell(served, endpoint_of(node, of, "elsewhere"), unchecked)
    stranger = security(stores, SecurityProtocol.SSL, authority="strangers")
    assert stranger.tls is not None
    stranger.tls.load_verify_locations(stores / "authority-trust.pem")
    tell(refused, endpoint_of(node, SecurityProtocol.SSL), stranger)


def test_nothing_is_sent_in_plain_text_that_is_to_be_protected(
    node: BrokerServer, stores: Path
) -> None:
    """The own listener decides, not what another broker has registered; the error names both."""

    async def scenario(peers: Peers) -> None:
        with pytest.raises(UnreachableError, match="INNER is PLAINTEXT, the one of this broker"):
            await metadata(peers)

    endpoint = Endpoint("INNER", "127.0.0.1", port_of(node), "PLAINTEXT")
    tell(scenario, endpoint, security(stores, SecurityProtocol.SASL_SSL))

    async def other(peers: Peers) -> None:
        with pytest.raises(UnreachableError, match=r"SASL_SSL is SASL_SSL, .* is PLAINTEXT"):
            await metadata(peers)

    tell(other, endpoint_of(node, SecurityProtocol.SASL_SSL), None)


def test_sessions_are_renewed_before_they_end(node: BrokerServer, stores: Path) -> None:
    """On the same connection; requests meanwhile wait, and are all answered."""
    of = SecurityProtocol.SASL_SSL
    shown = security(stores, of, mechanism="SCRAM-SHA-256")
    asked = []

    def show(_: str) -> ClientSecurity:
        asked.append(shown)
        return shown

    loop = MovedLoop()
    peers = Peers(lambda _: endpoint_of(node, of), client_id="test", security=show)

    async def scenario(peers: Peers) -> None:
        await metadata(peers)
        (session,) = sessions(node, of)
        for renewals in (1, 2):
            before = len(asked)
            pass_time(node, 0.8 * SESSION_S)
            loop.pass_time(0.96 * SESSION_S)
            answers: list[MetadataResponse] = []
            while len(asked) == before or len(answers) < 20 * renewals:
                answers += await asyncio.gather(*(metadata(peers) for _ in range(10)))
            assert all(each.brokers for each in answers)
        assert sessions(node, of) == [session]

    reported(scenario, peers, loop)


def test_a_session_that_is_refused_a_renewal_ends(node: BrokerServer, stores: Path) -> None:
    """The requests that wait for it are told; the next connection authenticates anew."""
    of = SecurityProtocol.SASL_PLAINTEXT
    right = security(stores, of, mechanism="SCRAM-SHA-512")
    shown = [right]
    loop = MovedLoop()
    peers = Peers(lambda _: endpoint_of(node, of), client_id="test", security=lambda _: shown[-1])

    async def scenario(peers: Peers) -> None:
        await metadata(peers)
        shown.append(replace(right, mechanism=Scram("broker", "wrong")))
        loop.pass_time(0.96 * SESSION_S)
        with pytest.raises(PeerAuthenticationError, match="failed authentication due to: SASL"):
            await until_refused(peers)
        shown.append(right)
        assert (await metadata(peers)).brokers

    reported(scenario, peers, loop)


async def until_refused(peers: Peers) -> None:
    """Requests without end."""
    while True:
        await metadata(peers)


VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(api_key=key, min_version=0, max_version=1)
        for key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
    ]
)


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ([b"r=other,s=c2FsdA==,i=4096"], "nonce does not continue"),
        ([b"i=1000000"], "malformed SCRAM challenge"),
        ([b"{first},s=c2FsdA==,i=4095"], "allowed are 4096"),
        ([b"{first},s=c2FsdA==,i=4096", b"v=AAAA"], "signature is wrong"),
        ([b"{first},s=c2FsdA==,i=4096", b"e=other-error"], "SCRAM authentication failed"),
    ],
)
def test_a_server_that_does_not_know_the_password(tokens: list[bytes], reason: str) -> None:
    """It cannot pass itself off as a broker: nonce and signature are checked."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, correlation_id = await receive(reader)
        respond(writer, correlation_id, VERSIONS)
        _, correlation_id = await receive(reader)
        respond(writer, correlation_id, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-512"]), 1)
        for token in tokens:
            size = int.from_bytes(await reader.readexactly(4), "big")
            data = await reader.readexactly(size)
            correlation_id = int.from_bytes(data[4:8], "big")
            nonce = data.partition(b",r=")[2].rstrip(b"\0")
            answer = token.replace(b"{first}", b"r=" + nonce + b"more")
            response = SaslAuthenticateResponse(auth_bytes=answer)
            respond(writer, correlation_id, response, 1)
        assert await reader.read() == b""
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        of = SecurityProtocol.SASL_PLAINTEXT
        shown = ClientSecurity(of, None, Scram("broker", "secret"))
        endpoint = Endpoint("IN", "127.0.0.1", port, of.name)
        peers = Peers(lambda _: endpoint, client_id="test", security=lambda _: shown)
        async with server:
            with pytest.raises(PeerAuthenticationError, match=reason):
                await metadata(peers)
            peers.close()

    asyncio.run(scenario())


def test_an_answer_before_authentication_is_small() -> None:
    """Who is not authenticated cannot have this broker allocate what it announces."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await receive(reader)
        writer.write((64 << 20).to_bytes(4, "big"))
        assert await reader.read() == b""
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        peers = Peers(lambda _: Endpoint("IN", "127.0.0.1", port), client_id="test")
        async with server:
            with pytest.raises(UnreachableError, match="is no answer"):
                await metadata(peers)
            peers.close()

    asyncio.run(scenario())
