"""Each client, over each protocol and mechanism it has: records go out and come back.

What is refused is in `test_secured_listeners` and `test_bearer_tokens`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer

from barnabas_broker.security.sasl_settings import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE
from barnabas_broker.testing import Broker
from barnabas_kafka.client import Admin, ClientConfig, ScramCredential, alter_scram_credentials
from tests.clients import go_client
from tests.clients.releases import OLDEST
from tests.clients.test_bearer_tokens import AUDIENCE, SIGNER, AsyncProvider, Provider, token
from tests.oracle.apache import CLIENTS_ALONE, run_tool
from tests.oracle.certificates import Certificate
from tests.oracle.tokens import key_set
from tests.waiting import ANSWER, seconds, wait_for

PASSWORD: Final = "pencil, ="
STORE_PASSWORD: Final = "of the trust store"
PROGRAM: Final = str(Path(__file__).parent / "programs" / "RoundTrip.java")
TOKENS_OF_JAVA: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
)
RECORDS: Final = [b"record %d" % number for number in range(50)]
PASSWORDS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = (*PASSWORDS, "OAUTHBEARER")


@dataclass(frozen=True)
class Way:
    """How to connect."""

    protocol: str
    mechanism: str | None = None

    def __str__(self) -> str:
        return f"{self.protocol}-{self.mechanism}" if self.mechanism else self.protocol


WAYS: Final = (
    Way("PLAINTEXT"),
    Way("SSL"),
    *(Way(of, mechanism) for of in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS),
)
#: What Java does in every run; the rest of its ways are for `make soak`.
OF_EVERY_RUN: Final = (
    Way("SSL"),
    Way("SASL_PLAINTEXT", "PLAIN"),
    Way("SASL_SSL", "SCRAM-SHA-512"),
    Way("SASL_SSL", "OAUTHBEARER"),
)
#: `OLDEST` is the first that has login modules in its properties.
JAVA: Final = (OLDEST, "2.8.2", "3.9.1", "4.1.0")
#: Bearer tokens came with 2.0, and a client's own way to get a signed one with 3.1.
WITHOUT_TOKENS: Final = (OLDEST, "2.8.2")


@dataclass(frozen=True)
class Place:
    """A broker with a listener of each protocol, and the files of its clients."""

    broker: Broker
    files: Path

    def librdkafka(self, way: Way, password: str = PASSWORD) -> dict[str, Any]:
        """Properties of librdkafka, and of the Go program."""
        found = {
            "bootstrap.servers": self.broker.listeners[way.protocol],
            "security.protocol": way.protocol,
        }
        if way.protocol.endswith("SSL"):
            found["ssl.ca.location"] = str(self.files / "trust.pem")
        if way.mechanism:
            found["sasl.mechanism"] = way.mechanism
        if way.mechanism in PASSWORDS:
            found |= {"sasl.username": "alice", "sasl.password": password}
        return found

    def python(self, way: Way, provider: Any) -> dict[str, Any]:
        """Settings of kafka-python and aiokafka."""
        found: dict[str, Any] = {
            "bootstrap_servers": self.broker.listeners[way.protocol],
            "security_protocol": way.protocol,
        }
        if way.protocol.endswith("SSL"):
            trust = str(self.files / "trust.pem")
            found["ssl_context"] = ssl.create_default_context(cafile=trust)
        if way.mechanism:
            found["sasl_mechanism"] = way.mechanism
        if way.mechanism in PASSWORDS:
            found |= {"sasl_plain_username": "alice", "sasl_plain_password": PASSWORD}
        elif way.mechanism:
            found["sasl_oauth_token_provider"] = provider
        return found

    def java(self, way: Way, release: str) -> dict[str, str]:
        """Properties of kafka-clients; PEM came with 2.7."""
        found = {
            "bootstrap.servers": self.broker.listeners[way.protocol],
            "security.protocol": way.protocol,
        }
        if way.protocol.endswith("SSL") and release != OLDEST:
            trust = str(self.files / "trust.pem")
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": trust}
        elif way.protocol.endswith("SSL"):
            found |= {
                "ssl.truststore.type": "PKCS12",
                "ssl.truststore.location": str(self.files / "trust.p12"),
                "ssl.truststore.password": STORE_PASSWORD,
            }
        if way.mechanism in PASSWORDS:
            module = PLAIN_MODULE if way.mechanism == "PLAIN" else SCRAM_MODULE
            login = f'{module} required username="alice" password="{PASSWORD}";'
            found |= {"sasl.mechanism": way.mechanism, "sasl.jaas.config": login}
        elif way.mechanism:
            given = self.files / "token"
            given.write_text(token(scope="kafka"))
            found |= {
                "sasl.mechanism": way.mechanism,
                "sasl.jaas.config": f'{OAUTHBEARER_MODULE} required extension_traceId="7";',
                "sasl.login.callback.handler.class": TOKENS_OF_JAVA,
                "sasl.oauthbearer.token.endpoint.url": given.as_uri(),
            }
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """It knows alice by each mechanism."""
    files = tmp_path_factory.mktemp("files")
    authority = Certificate("authority")
    authority.write_trust(files / "trust.pem")
    authority.write_trust(files / "trust.p12", STORE_PASSWORD)
    Certificate("broker", authority, host="localhost").write_pem(files / "broker.pem")
    (files / "keys.json").write_bytes(key_set(SIGNER))
    protocols = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    users = f'{PLAIN_MODULE} required user_alice="{PASSWORD}";'
    settings = {
        "listeners": ",".join(f"{protocol}://localhost:0" for protocol in protocols),
        "ssl.keystore.location": str(files / "broker.pem"),
        "ssl.keystore.type": "PEM",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": (files / "keys.json").as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": users,
    }
    with Broker(settings) as broker:
        scram = [ScramCredential("alice", PASSWORD, mechanism) for mechanism in PASSWORDS[1:]]
        with Admin(ClientConfig(bootstrap_servers=broker.listeners["PLAINTEXT"])) as admin:
            admin.call(alter_scram_credentials(scram)).all()
        yield Place(broker, files)


def librdkafka(place: Place, way: Way, topic: str) -> list[bytes]:
    """By confluent-kafka."""
    properties = place.librdkafka(way)
    if way.mechanism == "OAUTHBEARER":
        properties["oauth_cb"] = lambda _: (token(), 4e9, "alice", {})
    producer = Producer(properties)
    for value in RECORDS:
        producer.produce(topic, value)
    assert producer.flush(seconds(ANSWER)) == 0
    consumer = Consumer({**properties, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []

    def consumed() -> list[bytes]:
        found.extend(each.value() or b"" for each in consumer.consume(50, 1.0) if not each.error())
        return found

    with closing(consumer):
        wait_for("all records", consumed, until=lambda values: len(values) >= len(RECORDS))
    return found


def kafka_python(place: Place, way: Way, topic: str) -> list[bytes]:
    """By kafka-python."""
    settings = place.python(way, Provider())
    with closing(KafkaProducer(acks="all", **settings)) as producer:
        for future in [producer.send(topic, value) for value in RECORDS]:
            future.get(seconds(ANSWER))
    limit_ms = int(seconds(ANSWER) * 1000)
    reading = {"auto_offset_reset": "earliest", "consumer_timeout_ms": limit_ms}
    with closing(KafkaConsumer(topic, **reading, **settings)) as consumer:
        return [next(consumer).value for _ in RECORDS]


def aiokafka(place: Place, way: Way, topic: str) -> list[bytes]:
    """By aiokafka."""

    async def run() -> list[bytes]:
        settings = place.python(way, AsyncProvider())
        async with AIOKafkaProducer(acks="all", **settings) as producer:
            for value in RECORDS:
                await producer.send(topic, value)
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
            return [(await consumer.getone()).value for _ in RECORDS]

    async def within() -> list[bytes]:
        return await asyncio.wait_for(run(), seconds(ANSWER))

    return asyncio.run(within())


def by_go(library: str) -> Callable[[Place, Way, str], list[bytes]]:
    """By one of the libraries of Go."""

    def run(place: Place, way: Way, topic: str) -> list[bytes]:
        properties = {**place.librdkafka(way), "token": token()}
        done = go_client.round_trip(library, topic, len(RECORDS), properties)
        assert done.returncode == 0, done.stderr
        return done.stdout.encode().splitlines()

    return run


def by_java(release: str) -> Callable[[Place, Way, str], list[bytes]]:
    """By one release of kafka-clients."""

    def run(place: Place, way: Way, topic: str) -> list[bytes]:
        lines = (f"{name}={value}\n" for name, value in place.java(way, release).items())
        arguments = (PROGRAM, topic, str(len(RECORDS)))
        of = CLIENTS_ALONE if release == OLDEST else ""
        done = run_tool(*arguments, version=release, of=of, input="".join(lines))
        assert done.returncode == 0, done.stderr
        return done.stdout.encode().splitlines()

    return run


CLIENTS: Final = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    **{library: by_go(library) for library in go_client.LIBRARIES},
    **{f"Java-{release}": by_java(release) for release in JAVA},
}


def table() -> Iterator[Any]:
    """Clients and ways, as parameters."""
    for client in CLIENTS:
        release = client.removeprefix("Java-")
        for way in WAYS:
            marks = [pytest.mark.go] if client in go_client.LIBRARIES else []
            if release in JAVA:
                marks = [pytest.mark.jvm]
                if way.mechanism == "OAUTHBEARER" and release in WITHOUT_TOKENS:
                    continue
                if way not in OF_EVERY_RUN:
                    marks.append(pytest.mark.soak)
            yield pytest.param(client, way, id=f"{client}-{way}", marks=marks)


@pytest.mark.parametrize(("client", "way"), list(table()))
def test_records_come_back(place: Place, client: str, way: Way) -> None:
    """All of them, in order."""
    topic = place.broker.create_topic(f"{client}-{way}", partitions=1)
    assert CLIENTS[client](place, way, topic) == RECORDS


@pytest.mark.go
@pytest.mark.parametrize("mechanism", PASSWORDS)
@pytest.mark.parametrize("library", go_client.LIBRARIES)
def test_go_with_a_wrong_password(place: Place, library: str, mechanism: str) -> None:
    """It is told so, in the library's words."""
    properties = place.librdkafka(Way("SASL_SSL", mechanism), password="wrong")
    done = go_client.round_trip(library, "none", 1, properties)
    assert done.returncode == 1
    assert "uthentication" in done.stderr
