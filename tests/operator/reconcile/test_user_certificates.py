"""Client certificates of users on a broker: what one may do while, and after, its user is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from barnabas_operator.plan.users import UserView
from tests.operator import examples
from tests.operator.secured_broker import SecuredBroker
from tests.waiting import ANSWER, seconds, wait_for

ROLES = [
    {"type": "producer", "topic": "orders"},
    {"type": "consumer", "topic": "orders", "group": "billing"},
]


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[SecuredBroker]:
    """With a topic that only its users may reach."""
    with SecuredBroker(tmp_path) as running:
        running.create_topic("orders")
        yield running


def produce(settings: dict[str, Any]) -> int | None:
    """Send one record; the code of the error if it is not acknowledged."""
    reported: list[KafkaError | None] = []
    limit_ms = int(seconds(ANSWER) * 1000)
    producer = Producer({**settings, "retries": 0, "message.timeout.ms": limit_ms})
    producer.produce("orders", b"an order", on_delivery=lambda error, _: reported.append(error))
    assert producer.flush(seconds(ANSWER)) == 0
    return reported[0].code() if reported[0] else None


def consume(settings: dict[str, Any]) -> int:
    """What a read of the topic, in its group, comes to: the code of the first error, or 0."""
    consumer = Consumer({**settings, "group.id": "billing", "auto.offset.reset": "earliest"})

    def poll() -> list[int]:
        try:
            messages = consumer.consume(1, 0.1)
        except KafkaException as error:
            return [error.args[0].code()]
        return [found.code() if (found := each.error()) else 0 for each in messages]

    try:
        consumer.subscribe(["orders"])
        return wait_for("a record, or an error", poll)[0]
    finally:
        consumer.close()


def test_the_certificate_of_a_deleted_user_allows_nothing(secured: SecuredBroker) -> None:
    """It is good until it expires, and its ACLs are gone: as it comes, also on open connections."""
    secured.apply(examples.user(authentication={"type": "tls"}, authorization={"roles": ROLES}))
    settings = {**json.loads(secured.secret("billing")["librdkafka.json"]), "log_level": 0}
    assert produce(settings) is None
    assert consume(settings) == 0
    secured.remove("billing")
    assert secured.brokers.users(["billing"])["billing"] == UserView(acls=frozenset(), quotas={})
    assert produce(settings) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert consume(settings) in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    )
