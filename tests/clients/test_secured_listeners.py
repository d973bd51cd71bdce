"""Clients of every kind on listeners with TLS and SASL: in with the right credentials only."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer
from kafka import KafkaConsumer, KafkaProducer

from barnabas_broker.testing import Broker
from barnabas_kafka.client import Admin, ClientConfig, ScramCredential, alter_scram_credentials
from tests.oracle.apache import run_tool
from tests.oracle.certificates import Certificate
from tests.waiting import ANSWER, seconds, wait_for

PASSWORD = "pencil, ="
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS = {"SSL": "SSL", "SASL_PLAINTEXT": "SASL_PLAINTEXT", "SASL_SSL": "SASL_SSL"}
WAYS = [("SSL", None)] + [
    (protocol, mechanism) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS
]
JAAS = "org.apache.kafka.common.security"
RECORDS = [b"record %d" % number for number in range(200)]


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

    def python(self, protocol: str, mechanism: str | None) -> dict[str, Any]:
        """Settings of kafka-python and aiokafka."""
        found: dict[str, Any] = {
            "bootstrap_servers": self.address(protocol),
            "security_protocol": protocol,
        }
        if protocol.endswith("SSL"):
            found["ssl_context"] = ssl.create_default_context(cafile=str(self.authority))
        if mechanism is not None:
            found |= {
                "sasl_mechanism": mechanism,
                "sasl_plain_username": "alice",
                "sasl_plain_password": PASSWORD,
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


@pytest.fixture
def topic(secured: Secured, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    return secured.broker.create_topic(name, partitions=1)


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_librdkafka(secured: Secured, topic: str, protocol: str, mechanism: str | None) -> None:
    """Produced, and consumed in a group."""
    properties = secured.librdkafka(protocol, mechanism)
    producer = Producer(properties)
    for value in RECORDS:
        producer.produce(topic, value)
    assert producer.flush(seconds(ANSWER)) == 0
    consumer = Consumer({**properties, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []

    def consumed() -> list[bytes]:
        found.extend(each.value() or b"" for each in consumer.consume(100, 1.0) if not each.error())
        return found

    with closing(consumer):
        wait_for("all records", consumed, until=lambda values: len(values) >= len(RECORDS))
    assert found == RECORDS


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


@pytest.mark.parametrize(("protocol", "mechanism"), [("SSL", None), ("SASL_SSL", "SCRAM-SHA-512")])
def test_kafka_python(secured: Secured, topic: str, protocol: str, mechanism: str | None) -> None:
    """Produced and consumed."""
    settings = secured.python(protocol, mechanism)
    with closing(KafkaProducer(acks="all", **settings)) as producer:
        for future in [producer.send(topic, value) for value in RECORDS]:
            future.get(seconds(ANSWER))
    consumer = KafkaConsumer(
        topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(seconds(ANSWER) * 1000),
        **settings,
    )
    with closing(consumer):
        assert [next(consumer).value for _ in RECORDS] == RECORDS


@pytest.mark.parametrize(
    ("protocol", "mechanism"), [("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-256")]
)
def test_aiokafka(secured: Secured, topic: str, protocol: str, mechanism: str | None) -> None:
    """Produced and consumed."""
    settings = secured.python(protocol, mechanism)

    async def run() -> list[bytes]:
        async with AIOKafkaProducer(acks="all", **settings) as producer:
            for value in RECORDS:
                await producer.send(topic, value)
        consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings)
        async with consumer:
            return [(await consumer.getone()).value for _ in RECORDS]

    async def within() -> list[bytes]:
        return await asyncio.wait_for(run(), seconds(ANSWER))

    assert asyncio.run(within()) == RECORDS


@pytest.mark.jvm
@pytest.mark.parametrize("version", ["2.8.2", "3.9.1"])
@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("SSL", None), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512")],
)
def test_java(
    secured: Secured, topic: str, tmp_path: Path, version: str, protocol: str, mechanism: str | None
) -> None:
    """Java's console producer and consumer, with the properties that Kafka documents."""
    lines = [
        f"security.protocol={protocol}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={secured.authority}",
    ]
    if mechanism is not None:
        kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        login = f'username="alice" password="{PASSWORD}"'
        lines += [
            f"sasl.mechanism={mechanism}",
            f"sasl.jaas.config={JAAS}.{kind}LoginModule required {login};",
        ]
    properties = tmp_path / "client.properties"
    properties.write_text("\n".join(lines))
    address = ("--bootstrap-server", secured.address(protocol), "--topic", topic)
    sent = run_tool(
        "kafka.tools.ConsoleProducer", *address, "--producer.config", str(properties),
        version=version, input="one\ntwo\nthree\n",
    )  # fmt: skip
    assert sent.returncode == 0, sent.stderr
    consumer = {
        "2.8.2": "kafka.tools.ConsoleConsumer",
        "3.9.1": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    }[version]
    read = run_tool(
        consumer, *address, "--consumer.config", str(properties), "--from-beginning",
        "--max-messages", "3", "--timeout-ms", str(int(seconds(ANSWER) * 1000)),
        version=version,
    )  # fmt: skip
    assert read.stdout.split() == ["one", "two", "three"], read.stderr
