"""Clients of every kind with bearer tokens, on a listener that checks them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AsyncTokenProvider
from confluent_kafka import Consumer, KafkaError, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from barnabas_broker.testing import Broker
from barnabas_kafka.client import Admin, ClientConfig, OAuthBearer, describe_cluster
from tests.oracle.tokens import Signer, key_set
from tests.waiting import ANSWER, seconds, wait_for

RECORDS = [b"record %d" % number for number in range(200)]
SIGNER = Signer("first", "RS256")
AUDIENCE = "kafka"


@dataclass(frozen=True)
class Secured:
    """A broker whose clients bring tokens."""

    broker: Broker

    @property
    def address(self) -> str:
        """Where they connect."""
        return self.broker.listeners["SASL_PLAINTEXT"]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Its listener has its keys in a file."""
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_bytes(key_set(SIGNER))
    settings = {
        "listeners": "PLAINTEXT://localhost:0,SASL_PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    with Broker(settings) as broker:
        yield Secured(broker)


@pytest.fixture
def topic(secured: Secured, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    return secured.broker.create_topic(name, partitions=1)


def token(**claims: Any) -> str:
    """A token for alice."""
    return SIGNER.token(**{"aud": AUDIENCE, **claims})


def librdkafka(secured: Secured, given: str) -> dict[str, Any]:
    """Properties of librdkafka with a token of the caller's."""
    return {
        "bootstrap.servers": secured.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (given, 4e9, "alice", {"traceId": "7"}),
        "metadata.recovery.strategy": "none",
    }


def test_librdkafka(secured: Secured, topic: str) -> None:
    """Produced, and consumed in a group."""
    properties = librdkafka(secured, token())
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


@pytest.mark.parametrize("claims", [{"aud": "other"}, {"exp": 1}], ids=["audience", "expired"])
def test_librdkafka_with_a_refused_token(secured: Secured, claims: dict[str, Any]) -> None:
    """It is told so, and sends nothing."""
    errors: list[KafkaError] = []
    properties = librdkafka(secured, token(**claims))
    producer = Producer({**properties, "error_cb": errors.append})

    def refused() -> list[int]:
        producer.poll(0.1)
        return [error.code() for error in errors]

    wait_for("the refusal", refused, until=lambda codes: KafkaError._AUTHENTICATION in codes)
    assert "invalid_token" in " ".join(error.str() for error in errors)


class Provider(AbstractTokenProvider):  # type: ignore[misc]
    """Of kafka-python."""

    def token(self) -> str:
        """A new token for each connection."""
        return token()


class AsyncProvider(AsyncTokenProvider):  # type: ignore[misc]
    """Of aiokafka."""

    async def token(self) -> str:
        """A new token for each connection."""
        return token()


def python(secured: Secured, provider: Any) -> dict[str, Any]:
    """Settings of kafka-python and aiokafka."""
    return {
        "bootstrap_servers": secured.address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": provider,
    }


def test_kafka_python(secured: Secured, topic: str) -> None:
    """Produced and consumed."""
    settings = python(secured, Provider())
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


def test_aiokafka(secured: Secured, topic: str) -> None:
    """Produced and consumed."""
    settings = python(secured, AsyncProvider())

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


def test_the_admin_client(secured: Secured) -> None:
    """The client of this project."""
    config = ClientConfig(bootstrap_servers=secured.address, sasl=OAuthBearer(token))
    with Admin(config) as admin:
        assert admin.call(describe_cluster()).cluster_id
