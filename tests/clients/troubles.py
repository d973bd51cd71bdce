"""What clients are told when something is wrong: their errors as text, None when all is well."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.brokers import Barnabas

PATIENCE_S: Final = 60
DELIVERY_MS: Final = 60_000


def admin(broker: Barnabas) -> AdminClient:
    """librdkafka's admin client."""
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def outcome(future: Future[Any]) -> str | None:
    """The error of an admin operation, or None."""
    try:
        future.result(60)
    except KafkaException as error:
        return str(error)
    return None


def create(
    broker: Barnabas, topic: str, partitions: int = 1, replicas: int = 1, **config: str
) -> str | None:
    """Create a topic (underscores in settings stand for dots)."""
    new = NewTopic(topic, partitions, replicas, config=dotted(config))
    client = admin(broker)  # Its operations end with it.
    return outcome(client.create_topics([new], request_timeout=60)[topic])


def send(
    broker: Barnabas,
    topic: str,
    value: bytes = b"x",
    *,
    key: bytes | None = None,
    timestamp_ms: int = 0,
    logger: Callable[[str], None] | None = None,
    **settings: object,
) -> str | None:
    """Produce one record and wait for its fate.

    `logger` hears what librdkafka logs and the errors it does not give to the application.
    """
    reports: list[str | None] = []

    def delivered(error: object, _: object) -> None:
        reports.append(None if error is None else str(error))

    given: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap,
        "message.timeout.ms": DELIVERY_MS,
        **dotted(settings),
    }
    if logger is not None:
        given["error_cb"] = lambda error: logger(str(error))
    producer = Producer(given)
    try:
        producer.produce(topic, value, key=key, timestamp=timestamp_ms, on_delivery=delivered)
    except KafkaException as error:
        return str(error)
    producer.flush(DELIVERY_MS / 1000 + 10)
    (report,) = reports
    return report


def dotted(settings: dict[str, Any]) -> dict[str, Any]:
    """Names as clients know them."""
    return {name.replace("_", "."): value for name, value in settings.items()}


def until_logged(broker: Barnabas, text: str) -> str:
    """The broker's log once it has the text; the broker is asked something in between."""
    client = admin(broker)
    give_up_at = time.monotonic() + PATIENCE_S
    while text not in (log := broker.log_file.read_text()):
        assert time.monotonic() < give_up_at, log
        client.list_topics(timeout=PATIENCE_S)
    return log
