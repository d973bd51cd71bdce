"""Clients in trouble: the errors they are told as text, None when all is well."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.brokers import Barnabas
from tests.waiting import ANSWER, ATTEMPT_S, SETTLE, seconds, wait_for

ROUNDS: Final = 5
"""How often consumers are polled between two pauses of a wait: a rebalance needs several polls."""


def admin(broker: Barnabas) -> AdminClient:
    """librdkafka's admin client."""
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def outcome(future: Future[Any]) -> str | None:
    """The error of an admin operation, or None."""
    try:
        future.result(seconds(ANSWER))
    except KafkaException as error:
        return str(error)
    return None


def create(
    broker: Barnabas, topic: str, partitions: int = 1, replicas: int = 1, **config: str
) -> str | None:
    """Create a topic (underscores in settings stand for dots)."""
    new = NewTopic(topic, partitions, replicas, config=dotted(config))
    client = admin(broker)  # Its operations end with it.
    return outcome(client.create_topics([new], request_timeout=seconds(ANSWER))[topic])


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
        "message.timeout.ms": int(seconds(ANSWER) * 1000),
        **dotted(settings),
    }
    if logger is not None:
        given["error_cb"] = lambda error: logger(str(error))
    producer = Producer(given)
    try:
        producer.produce(topic, value, key=key, timestamp=timestamp_ms, on_delivery=delivered)
    except KafkaException as error:
        return str(error)
    producer.flush(seconds(SETTLE))
    (report,) = reports
    return report


def dotted(settings: dict[str, Any]) -> dict[str, Any]:
    """Names as clients know them."""
    return {name.replace("_", "."): value for name, value in settings.items()}


def until_logged(broker: Barnabas, text: str) -> str:
    """The broker's log once it has the text; the broker is asked something in between."""
    client = admin(broker)

    def asked() -> str:
        client.list_topics(timeout=ATTEMPT_S)
        return broker.log_file.read_text()

    return wait_for(
        f"the broker's log, to contain {text!r}",
        asked,
        until=lambda log: text in log,
        retry=(KafkaException,),
    )


def consumer(broker: Barnabas, group: str, **settings: Any) -> Consumer:
    """A member to be, that reads from the start."""
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 60_000,
            "heartbeat.interval.ms": 200,
            **dotted(settings),
        }
    )


def poll_until(done: Callable[[], bool], *consumers: Consumer) -> str:
    """Poll all in turn until `done`; returns the errors they were told."""
    errors: list[str] = []

    def poll_and_show() -> tuple[bool, list[list[TopicPartition]]]:
        for _ in range(ROUNDS):
            if done():
                return True, []
            for each in consumers:
                message = each.poll(0.05)
                if message is not None and message.error() is not None:
                    errors.append(str(message.error()))
            if errors:
                return True, []
        return False, [each.assignment() for each in consumers]

    wait_for(
        "consumers that are polled, and have these assignments",
        poll_and_show,
        until=lambda it: it[0],
    )
    return " ".join(errors)


def members(broker: Barnabas, group: str) -> int:
    """How many members the coordinator knows."""
    client = admin(broker)
    asked = client.describe_consumer_groups([group], request_timeout=seconds(ANSWER))
    return len(asked[group].result().members)


def one_record(reader: Consumer) -> bytes:
    """The next record's value."""
    message = wait_for(
        "a record",
        lambda: reader.poll(0.1),
        until=lambda message: message is not None and message.error() is None,
    )
    assert message is not None
    value = message.value()
    assert isinstance(value, bytes)
    return value


def first_error(reader: Consumer) -> str:
    """The first thing that goes wrong."""
    return poll_until(lambda: False, reader)


def has_all(reader: Consumer, topic: str, partitions: int = 1) -> Callable[[], bool]:
    """Whether the consumer is assigned every partition."""
    return lambda: len([tp for tp in reader.assignment() if tp.topic == topic]) == partitions
