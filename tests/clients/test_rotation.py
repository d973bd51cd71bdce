"""Everything that vouches for somebody is replaced under load: no request fails meanwhile.

Whoever has only what was replaced is refused from then on; connections that were there go on.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from barnabas_broker.testing import Broker
from barnabas_kafka.client import (
    Admin,
    AuthenticationError,
    ClientConfig,
    OAuthBearer,
    Scram,
    ScramCredential,
    alter_scram_credentials,
    describe_cluster,
)
from tests.oracle.certificates import Certificate
from tests.oracle.tokens import Signer, key_set
from tests.waiting import SETTLE, seconds, wait_for


@dataclass
class Place:
    """A broker that takes passwords and tokens over TLS."""

    broker: Broker
    files: Path
    authority: Certificate
    signer: Signer = field(default_factory=lambda: Signer("first", "ES256"))

    @property
    def address(self) -> str:
        """Where its clients connect."""
        return self.broker.listeners["SASL_SSL"]

    def publish(self, *signers: Signer) -> None:
        """Have the broker know these keys from now on."""
        replaced(self.files / "keys.json", key_set(*signers))

    def certified(self, authority: Certificate) -> None:
        """Give the broker a certificate of an authority, and wait until it is shown."""
        new = Certificate("broker", authority, host="localhost")
        new.write_pem(self.files / "renewed.pem").rename(self.files / "broker.pem")
        host, _, port = self.address.rpartition(":")
        wait_for(
            "the new certificate",
            lambda: ssl.get_server_certificate((host, int(port))).encode(),
            until=lambda shown: shown == new.pem,
        )


def replaced(file: Path, content: bytes) -> None:
    """As who renews a file does it: in one step."""
    renewed = file.with_suffix(".new")
    renewed.write_bytes(content)
    renewed.rename(file)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """With alice's first password."""
    authority = Certificate("first authority")
    authority.write_trust(tmp_path / "trust.pem")
    Certificate("broker", authority, host="localhost").write_pem(tmp_path / "broker.pem")
    signer = Signer("first", "ES256")
    (tmp_path / "keys.json").write_bytes(key_set(signer))
    settings = {
        "listeners": "PLAINTEXT://localhost:0,SASL_SSL://localhost:0",
        "ssl.keystore.location": str(tmp_path / "broker.pem"),
        "ssl.keystore.type": "PEM",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
    }
    with Broker(settings) as broker:
        broker.create_topic("t", partitions=1)
        found = Place(broker, tmp_path, authority, signer)
        set_password(found, "first")
        yield found


def set_password(place: Place, password: str | None) -> None:
    """Set alice's password, or take it away."""
    change = (
        alter_scram_credentials(deletions=[("alice", "SCRAM-SHA-512")])
        if password is None
        else alter_scram_credentials([ScramCredential("alice", password, "SCRAM-SHA-512")])
    )
    with Admin(ClientConfig(bootstrap_servers=place.broker.listeners["PLAINTEXT"])) as admin:
        admin.call(change).all()


def connect(place: Place, sasl: Scram | OAuthBearer, trust: Path | None = None) -> None:
    """Connect anew, and ask something; raises AuthenticationError."""
    tls = ssl.create_default_context(cafile=str(trust or place.files / "trust.pem"))
    config = ClientConfig(bootstrap_servers=place.address, tls=tls, sasl=sasl)
    with Admin(config) as admin:
        admin.call(describe_cluster())


def by_token(signer: Signer) -> OAuthBearer:
    """With tokens that it has signed."""
    return OAuthBearer(signer.token)


def is_accepted(place: Place, sasl: Scram | OAuthBearer) -> bool:
    """Whether one who connects anew gets in."""
    try:
        connect(place, sasl)
    except AuthenticationError:
        return False
    return True


@contextmanager
def under_load(place: Place, login: Mapping[str, Any]) -> Iterator[None]:
    """A producer sends all the time: each record is acknowledged, and no error is told."""
    failures: list[KafkaError] = []
    delivered: list[int] = []
    over = threading.Event()
    producer = Producer(
        {
            "bootstrap.servers": place.address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(place.files / "trust.pem"),
            "acks": "all",
            "linger.ms": 0,
            "error_cb": failures.append,
            **login,
        }
    )

    def acknowledged(error: KafkaError | None, message: Any) -> None:
        delivered.append(0 if error is None else error.code())

    def send() -> None:
        while not over.is_set():
            producer.produce("t", b"a record", on_delivery=acknowledged)
            producer.poll(0.01)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        wait_for("the first record", lambda: delivered)
        yield
        count = len(delivered)
        wait_for("a record behind the change", lambda: len(delivered) > count)
    finally:
        over.set()
        thread.join()
        left = producer.flush(seconds(SETTLE))
    assert left == 0
    assert set(delivered) == {0}
    assert not failures


PASSWORD = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "alice", "sasl.password": "first"}


def test_certificate_and_authority(place: Place) -> None:
    """Who trusts both authorities does not notice; who trusts the old one alone is told."""
    alice = Scram("alice", "first")
    second = Certificate("second authority")
    both = place.files / "both.pem"
    both.write_bytes(place.authority.pem + second.pem)
    old, new = (place.files / f"{name}.pem" for name in ("old", "new"))
    old.write_bytes(place.authority.pem)
    new.write_bytes(second.pem)
    with under_load(place, {**PASSWORD, "ssl.ca.location": str(both)}):
        place.certified(place.authority)
        connect(place, alice, old)
        place.certified(second)
        connect(place, alice, both)
        connect(place, alice, new)
        with pytest.raises(AuthenticationError, match="CERTIFICATE_VERIFY_FAILED"):
            connect(place, alice, old)


def test_password(place: Place) -> None:
    """The old one, and one that was taken away, log nobody in any more."""
    first, second = Scram("alice", "first"), Scram("alice", "second")
    with under_load(place, PASSWORD):
        connect(place, first)
        # Brokers are told of a change that is answered already, as in Kafka.
        set_password(place, "second")
        wait_for("the second password", lambda: is_accepted(place, second))
        assert not is_accepted(place, first)
        set_password(place, None)
        wait_for("the end of the second one", lambda: not is_accepted(place, second))


def test_token_and_the_key_that_signs_it(place: Place) -> None:
    """The provider signs with a new key, then the old one is revoked; expired ones are refused."""
    first, second = place.signer, Signer("second", "ES256")
    current = [first]
    login = {
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (current[0].token(), 4e9, "alice", {}),
    }
    with under_load(place, login):
        connect(place, by_token(first))
        place.publish(first, second)
        wait_for("the second key", lambda: is_accepted(place, by_token(second)))
        current[0] = second
        connect(place, by_token(first))
        place.publish(second)
        wait_for("the end of the first key", lambda: not is_accepted(place, by_token(first)))
        connect(place, by_token(second))
        with pytest.raises(AuthenticationError):
            connect(place, OAuthBearer(lambda: second.token(exp=1)))
