"""Clients beyond their quotas: what librdkafka and Java's producer are told; nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas_kafka.client import Admin, ClientConfig, QuotaEntity, alter_quotas
from tests.clients.brokers import Barnabas
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, seconds, wait_for

PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
TOPIC = "limited"
VALUE = b"x" * 10_000
COUNT = 20
#: Bytes a second: all records are a little more than the ten windows that count may have.
RATE = 15_000.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Barnabas]:
    """With quotas for the client ids `slow` and `slow-java`."""
    directory: Path = tmp_path_factory.mktemp("broker")
    with Barnabas(directory, {"broker.id": "0"}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(seconds(ANSWER))
        rates: dict[str, float | None] = dict.fromkeys(
            ("producer_byte_rate", "consumer_byte_rate"), RATE
        )
        with Admin(ClientConfig(bootstrap_servers=running.bootstrap)) as ours:
            names = ("slow", "slow-java")
            limits: dict[QuotaEntity, dict[str, float | None]] = {
                frozenset({("client-id", name)}): rates for name in names
            }
            ours.call(alter_quotas(limits)).all()
        yield running


def test_librdkafka_gets_throttle_times(broker: Barnabas) -> None:
    """Producer and consumer hear of their throttle times, and nothing is lost."""
    reported: list[Any] = []
    base = {
        "bootstrap.servers": broker.bootstrap,
        "client.id": "slow",
        "throttle_cb": reported.append,
    }
    producer = Producer({**base, "linger.ms": 0, "batch.num.messages": 1})
    for _ in range(COUNT):
        producer.produce(TOPIC, VALUE)
    assert producer.flush(seconds(ANSWER)) == 0
    assert reported
    assert max(each.throttle_time for each in reported) > 0
    assert {each.broker_id for each in reported} == {0}
    reported.clear()
    consumer = Consumer({**base, "group.id": "slow", "fetch.message.max.bytes": 50_000})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[bytes | None] = []

    def read() -> int:
        values.extend(message.value() for message in consumer.consume(COUNT, 0.5))
        return len(values)

    wait_for("all records", read, until=lambda count: count >= COUNT)
    consumer.close()
    assert values == [VALUE] * COUNT
    assert reported


@pytest.mark.jvm
def test_the_java_producer_gets_throttle_times(broker: Barnabas) -> None:
    """Its metric is the throttle time of responses."""
    done = run_tool(
        PRODUCER_PERFORMANCE, "--topic", TOPIC, "--num-records", str(COUNT), "--record-size",
        str(len(VALUE)), "--throughput", "-1", "--print-metrics", "--producer-props",
        f"bootstrap.servers={broker.bootstrap}", "client.id=slow-java", "batch.size=0",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{COUNT} records sent" in done.stdout
    (longest,) = re.findall(r"produce-throttle-time-max.*: *([0-9.]+)", done.stdout)
    assert float(longest) > 0
