"""Clients of a secured broker, each connected by the one line that is for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer
from kafka import KafkaConsumer, KafkaProducer

from barnabas_broker.testing import Broker, BrokerError
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, START, seconds


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One with a topic, and a user that may use it."""
    with Broker(secured=True, startup_timeout_s=seconds(START)) as broker:
        broker.create_topic("orders", partitions=1)
        broker.create_user("shop", produce="orders", consume=["orders"], group="billing")
        yield broker


def _send(settings: dict[str, str], topic: str = "orders") -> KafkaError | None:
    answers: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": int(seconds(ANSWER) * 1000)})
    producer.produce(topic, b"a", on_delivery=lambda error, _: answers.append(error))
    assert producer.flush(seconds(ANSWER) * 2) == 0
    return answers[0]


def test_librdkafka(broker: Broker) -> None:
    """Its user sends and reads what it may, and nothing else."""
    settings = broker.client_properties("shop")
    assert settings["sasl.mechanism"] == "SCRAM-SHA-512"
    assert _send(settings) is None
    consumer = Consumer({**settings, "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    message = consumer.poll(seconds(ANSWER))
    consumer.close()
    assert message is not None
    assert message.value() == b"a"
    broker.create_topic("secret", partitions=1)
    denied = _send(settings, "secret")
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_kafka_python(broker: Broker) -> None:
    """A keyword argument for each."""
    settings = broker.python_settings("shop")
    with closing(KafkaProducer(**settings)) as producer:
        producer.send("orders", b"p").get(seconds(ANSWER))
    outside_a_group = {"auto_offset_reset": "earliest", "group_id": None}
    timeout_ms = int(seconds(ANSWER) * 1000)
    consumer = KafkaConsumer(
        "orders", **settings, **outside_a_group, consumer_timeout_ms=timeout_ms
    )
    with closing(consumer):
        assert b"p" in (record.value for record in iter(consumer))


def test_aiokafka(broker: Broker) -> None:
    """The same arguments."""

    async def there_and_back() -> None:
        settings = broker.python_settings("shop")
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait("orders", b"aio")
        consumer = AIOKafkaConsumer("orders", **settings, auto_offset_reset="earliest")
        async with consumer, asyncio.timeout(seconds(ANSWER)):
            async for record in consumer:
                if record.value == b"aio":
                    return

    asyncio.run(there_and_back())


def test_java(broker: Broker) -> None:
    """Kafka's own tools, with the file of the user."""
    where = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "orders"]
    config = str(broker.command_config("shop"))
    producer = run_tool(
        "kafka.tools.ConsoleProducer", *where, "--producer.config", config, input="java\n"
    )
    assert producer.returncode == 0, producer.stderr
    read = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", *where, "--consumer.config", config,
        "--group", "billing", "--max-messages", "1",
    )  # fmt: skip
    assert read.returncode == 0, read.stderr
    assert "Processed a total of 1 messages" in read.stdout + read.stderr


def test_a_user_survives_a_restart_and_gets_more(broker: Broker) -> None:
    """Its password stays, ACLs are added; a broker without users refuses."""
    broker.create_topic("more", partitions=1)
    before = broker.client_properties("shop")
    assert broker.create_user("shop", produce="more") == before
    broker.restart()
    assert _send(broker.client_properties("shop"), "more") is None
    assert _send(broker.client_properties("shop")) is None
    with (
        Broker(startup_timeout_s=seconds(START)) as plain,
        pytest.raises(BrokerError, match="secured=True"),
    ):
        plain.create_user("shop")
