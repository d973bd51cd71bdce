"""The admin client over TLS and SASL against Apache Kafka: every mechanism, right and wrong."""

from __future__ import annotations

import json
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas_kafka.client import (
    Admin,
    AuthenticationError,
    ClientConfig,
    MalformedResponseError,
    OAuthBearer,
    Plain,
    Scram,
    ScramCredential,
    alter_scram_credentials,
    describe_cluster,
)
from barnabas_kafka.client.sasl import Mechanism
from tests.oracle.apache import ApacheKafka, free_port
from tests.oracle.certificates import Certificate
from tests.waiting import ANSWER, seconds, wait_for

pytestmark = pytest.mark.jvm

PASSWORD = "changeit"
JAAS = "org.apache.kafka.common.security"
USERS = [
    ScramCredential("alice", "pencil, =", "SCRAM-SHA-256", 8192),
    ScramCredential("alice", "pencil, =", "SCRAM-SHA-512"),
]


@dataclass(frozen=True)
class Secured:
    """A broker with its listeners, and the authority that vouches for it."""

    secured: str
    tls_only: str
    plaintext: str
    authority: Path
    own: Path

    def config(self, sasl: Mechanism | None, **changes: object) -> ClientConfig:
        """A client that trusts the authority."""
        settings: dict[str, object] = {
            "bootstrap_servers": self.secured,
            "tls": ssl.create_default_context(cafile=str(self.authority)),
            "sasl": sasl,
            "timeout_s": seconds(ANSWER),
        }
        return ClientConfig(**(settings | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=["2.8.2", "3.9.1"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    """SASL_SSL with all mechanisms, SSL with client certificates, and PLAINTEXT."""
    files = tmp_path_factory.mktemp("certificates")
    authority = Certificate("authority")
    Certificate("broker", authority, host="127.0.0.1").write_pkcs12(files / "broker.p12", PASSWORD)
    authority.write_trust(files / "trust.p12", PASSWORD)
    own = Certificate("operator", authority).write_pem(files / "own.pem")
    secured, tls_only = free_port(), free_port()
    with ExitStack() as stack:
        kafka = ApacheKafka(request.param, heap="384M")
        kafka.settings |= {
            "listeners": f"PLAINTEXT://127.0.0.1:{kafka.port},SASL_SSL://127.0.0.1:{secured},"
            f"SSL://127.0.0.1:{tls_only}",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(files / "broker.p12"),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(files / "trust.p12"),
            "ssl.truststore.password": PASSWORD,
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            **{
                f"listener.name.sasl_ssl.{name}.sasl.jaas.config": f"{JAAS}.{module};"
                for name, module in {
                    "plain": 'plain.PlainLoginModule required user_bob="secret"',
                    "scram-sha-256": "scram.ScramLoginModule required",
                    "scram-sha-512": "scram.ScramLoginModule required",
                    "oauthbearer": "oauthbearer.OAuthBearerLoginModule required",
                }.items()
            },
            "listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms": "3600000",
        }
        stack.enter_context(kafka)
        plain = ClientConfig(bootstrap_servers=kafka.bootstrap, timeout_s=seconds(ANSWER))
        admin = stack.enter_context(Admin(plain))
        admin.call(alter_scram_credentials(USERS)).all()
        yield Secured(
            f"127.0.0.1:{secured}", f"127.0.0.1:{tls_only}", kafka.bootstrap,
            authority.write_trust(files / "trust.pem"), own,
        )  # fmt: skip


def ask(config: ClientConfig) -> str:
    """The id of the cluster."""
    with Admin(config) as admin:
        return admin.call(describe_cluster()).cluster_id or ""


def token(subject: str, life: timedelta = timedelta(hours=1)) -> str:
    """An unsecured JWT, as Apache's default handlers take it."""
    now = datetime.now(tz=UTC)
    claims = {"sub": subject, "iat": now.timestamp(), "exp": (now + life).timestamp()}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join([*(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), ""])


async def fetched() -> str:
    """A token of a coroutine function."""
    return token("carol")


@pytest.mark.parametrize(
    "mechanism",
    [
        Plain("bob", "secret"),
        Scram("alice", "pencil, =", "SCRAM-SHA-256"),
        Scram("alice", "pencil, =", "SCRAM-SHA-512"),
        OAuthBearer(lambda: token("carol")),
        OAuthBearer(fetched),
    ],
    ids=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "OAUTHBEARER coroutine"],
)
def test_each_mechanism_authenticates(broker: Secured, mechanism: Mechanism) -> None:
    """Over TLS; a user that was created a moment ago may not be known yet."""

    def known() -> str:
        try:
            return ask(broker.config(mechanism))
        except AuthenticationError:
            return ""

    assert wait_for("an authenticated call", known)


@pytest.mark.parametrize(
    "mechanism",
    [
        Plain("bob", "wrong"),
        Scram("alice", "wrong", "SCRAM-SHA-512"),
        Scram("nobody", "pencil", "SCRAM-SHA-256"),
        OAuthBearer(lambda: token("carol", timedelta(hours=-1))),
    ],
    ids=["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256", "OAUTHBEARER"],
)
def test_wrong_credentials_fail_at_once(broker: Secured, mechanism: Mechanism) -> None:
    """And not at the deadline: trying again would lock an account."""
    with pytest.raises(AuthenticationError):
        ask(broker.config(mechanism))


def test_a_token_provider_that_fails_is_named(broker: Secured) -> None:
    """Its error is the reason."""

    def provider() -> str:
        raise OSError("no identity provider")

    with pytest.raises(AuthenticationError, match="no identity provider"):
        ask(broker.config(OAuthBearer(provider)))


def test_a_broker_of_another_authority_is_not_believed(broker: Secured) -> None:
    """The machine's own authorities do not vouch for it."""
    with pytest.raises(AuthenticationError, match="certificate verify failed"):
        ask(broker.config(Plain("bob", "secret"), tls=ssl.create_default_context()))


def test_a_certificate_of_another_host_is_not_believed(broker: Secured) -> None:
    """The broker's certificate is for 127.0.0.1; the password is not sent to `localhost`."""
    port = broker.secured.partition(":")[2]
    with pytest.raises(AuthenticationError, match="localhost"):
        ask(broker.config(Plain("bob", "secret"), bootstrap_servers=f"localhost:{port}"))


def test_client_certificates(broker: Secured) -> None:
    """A listener that asks for one takes ours, and refuses a client without."""
    context = ssl.create_default_context(cafile=str(broker.authority))
    context.load_cert_chain(str(broker.own))
    assert ask(broker.config(None, bootstrap_servers=broker.tls_only, tls=context))


def test_plaintext_to_a_tls_listener_says_so(broker: Secured) -> None:
    """Instead of a frame of 350 MB."""
    config = ClientConfig(bootstrap_servers=broker.tls_only, timeout_s=seconds(ANSWER))
    with pytest.raises(MalformedResponseError, match="TLS"):
        ask(config)


def test_tls_to_a_plaintext_listener_fails(broker: Secured) -> None:
    """At once: Kafka closes the connection, or answers what is not TLS."""
    config = broker.config(None, bootstrap_servers=broker.plaintext, timeout_s=0.5)
    with pytest.raises((AuthenticationError, TimeoutError)):
        ask(config)
