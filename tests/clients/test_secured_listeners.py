"""Clients with wrong credentials on listeners with TLS and SASL: they are told, and get nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from barnabas_broker.testing import Broker
from barnabas_kafka.client import Admin, ClientConfig, ScramCredential, alter_scram_credentials
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas_kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.clients.brokers import Barnabas
from tests.clients.wire import Wire
from tests.oracle.certificates import Certificate
from tests.waiting import wait_for

PASSWORD = "pencil, ="
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS = {"SSL": "SSL", "SASL_PLAINTEXT": "SASL_PLAINTEXT", "SASL_SSL": "SASL_SSL"}
JAAS = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class Secured:
    """A broker with a listener of each protocol."""

    broker: Broker
    authority: Path

    def address(self, protocol: str) -> str:
        """Where it listens."""
        return self.broker.listeners[protocol]

    def librdkafka(
        self, protocol: str, mechanism: str | None, password: str = PASSWORD
    ) -> dict[str, Any]:
        """Properties of librdkafka."""
        found = {
            "bootstrap.servers": self.address(protocol),
            "security.protocol": protocol,
            "ssl.ca.location": str(self.authority),
            "metadata.recovery.strategy": "none",
        }
        if mechanism is not None:
            found |= {
                "sasl.mechanism": mechanism,
                "sasl.username": "alice",
                "sasl.password": password,
            }
        return found


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker that knows alice by each mechanism."""
    files = tmp_path_factory.mktemp("certificates")
    authority = Certificate("authority")
    trust = authority.write_trust(files / "trust.pem")
    Certificate("broker", authority, host="localhost").write_pem(files / "broker.pem")
    settings = {
        "listeners": "PLAINTEXT://localhost:0,"
        + ",".join(f"{protocol}://localhost:0" for protocol in PROTOCOLS),
        "ssl.keystore.location": str(files / "broker.pem"),
        "ssl.keystore.type": "PEM",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{
            f"listener.name.{name.lower()}.plain.sasl.jaas.config": (
                f'{JAAS}.plain.PlainLoginModule required user_alice="{PASSWORD}";'
            )
            for name in PROTOCOLS
        },
    }
    with Broker(settings) as broker:
        plain = ClientConfig(bootstrap_servers=broker.listeners["PLAINTEXT"])
        users = [
            ScramCredential("alice", PASSWORD, "SCRAM-SHA-256"),
            ScramCredential("alice", PASSWORD, "SCRAM-SHA-512"),
        ]
        with Admin(plain) as admin:
            admin.call(alter_scram_credentials(users)).all()
        yield Secured(broker, trust)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_with_a_wrong_password(secured: Secured, mechanism: str) -> None:
    """It is told so, and sends nothing."""
    errors: list[int] = []
    properties = secured.librdkafka("SASL_SSL", mechanism, password="wrong")
    producer = Producer({**properties, "error_cb": lambda error: errors.append(error.code())})

    def refused() -> list[int]:
        producer.poll(0.1)
        return errors

    failed = KafkaError._AUTHENTICATION
    wait_for("the refusal", refused, until=lambda codes: failed in codes)


def test_librdkafka_that_trusts_another_authority(secured: Secured, tmp_path: Path) -> None:
    """The broker's certificate is checked by the client."""
    stranger = Certificate("stranger").write_trust(tmp_path / "stranger.pem")
    errors: list[int] = []
    properties = secured.librdkafka("SSL", None) | {"ssl.ca.location": str(stranger)}
    producer = Producer({**properties, "error_cb": lambda error: errors.append(error.code())})

    def refused() -> list[int]:
        producer.poll(0.1)
        return errors

    wait_for("the refusal", refused, until=lambda codes: KafkaError._SSL in codes)


def told_of(address: str, user: str, extensions: str = "") -> dict[str, str]:
    """What a broker answers to whoever begins SCRAM as that user: salt and iterations."""
    with Wire(address) as wire:
        handshake = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
        assert wire.ask(handshake, SaslHandshakeResponse, 1).error_code == ErrorCode.NONE
        first = SaslAuthenticateRequest(auth_bytes=f"n,,n={user},r=nonce{extensions}".encode())
        answer = wire.ask(first, SaslAuthenticateResponse, 2)
    parts = bytes(answer.auth_bytes).decode().split(",")
    return {part[0]: part[2:] for part in parts if not part.startswith("r=")}


def test_scram_responses_do_not_reveal_unknown_users(tmp_path: Path) -> None:
    """Salt and iterations are in the manner of users, and the same after a restart."""
    settings = {
        "listeners": "PLAINTEXT://localhost:0,SASL_PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    broker = Barnabas(tmp_path / "broker", settings)
    reported: list[list[dict[str, str]]] = []
    for _ in range(2):
        with broker:
            listeners = json.loads((broker.directory / "ready.json").read_text())["listeners"]
            if not reported:
                user = ScramCredential("alice", PASSWORD, "SCRAM-SHA-256", iterations=7777)
                plain = ClientConfig(bootstrap_servers=listeners["PLAINTEXT"])
                with Admin(plain) as admin:
                    admin.call(alter_scram_credentials([user])).all()
            address = listeners["SASL_PLAINTEXT"]
            names = ("alice", "nobody", "somebody")
            reported.append([told_of(address, name) for name in names])
            # Were they the same, who is answered otherwise as a token would be known for a user.
            as_tokens = [told_of(address, name, ",tokenauth=true") for name in names]
            assert all(one != other for one, other in zip(reported[-1], as_tokens, strict=True))
    assert reported[0] == reported[1]
    alice, nobody, somebody = reported[0]
    assert alice["i"] == nobody["i"] == somebody["i"] == "7777"
    assert len(alice["s"]) == len(nobody["s"])
    assert len({alice["s"], nobody["s"], somebody["s"]}) == 3
