"""`kafka-verifiable-producer`: increasing numbers as records, and what became of each as JSON."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection, describe, failures
from barnabas_broker.cli.kafka.events import event
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_broker.cli.perf.measures import due_s
from barnabas_broker.cli.produce import open_producer

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer


@tool("kafka-verifiable-producer")
@click.option("--topic", required=True)
@click.option("--max-messages", type=int, default=-1, help="Until interrupted below 0.")
@click.option("--throughput", type=int, default=-1, help="Records a second; no limit below 0.")
@click.option("--acks", type=click.Choice(["0", "1", "-1"]), default="-1")
@click.option("--message-create-time", type=int, metavar="MS", help="The first record's timestamp.")
@click.option("--value-prefix", type=int, help="In front of the number, with a dot between.")
@click.option("--repeating-keys", type=click.IntRange(min=1), help="Keys from 0 up and below it.")
@connected("--broker-list", config="--producer.config")
def main(topic: str, connection: Connection, **options: Any) -> None:
    """Send increasing numbers, and print as JSON which records were acknowledged."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # No retries: every record is reported as delivered or as failed once.
    producer = open_producer(connection, topic, {"acks": options["acks"], "retries": 0})
    sending = _Sending(producer, topic, options["throughput"])
    event("startup_complete")
    try:
        with failures(f"cannot send to {topic}"):
            for key, value, timestamp_ms in _records(options):
                sending.send(key, value, timestamp_ms)
    except KeyboardInterrupt:
        pass  # The ordinary way to end it.
    finally:
        sending.finish(connection.timeout_s)


def _records(options: dict[str, Any]) -> Iterator[tuple[str | None, str, int]]:
    """Key, value and timestamp of each record; a timestamp of 0 is the present."""
    prefix, keys = options["value_prefix"], options["repeating_keys"]
    created_ms, limit = options["message_create_time"], options["max_messages"]
    began_s = time.monotonic()
    number = 0
    while limit < 0 or number < limit:
        value = str(number) if prefix is None else f"{prefix}.{number}"
        elapsed_ms = int((time.monotonic() - began_s) * 1000)
        timestamp_ms = 0 if created_ms in (None, -1) else created_ms + elapsed_ms
        yield None if keys is None else str(number % keys), value, timestamp_ms
        number += 1


class _Sending:
    """Sends, and prints what the broker says of each record."""

    def __init__(self, producer: Producer, topic: str, throughput: int) -> None:
        self._producer = producer
        self._topic = topic
        self._throughput = throughput
        self._began_s = time.monotonic()
        self._sent = 0
        self._acked = 0

    def send(self, key: str | None, value: str, timestamp_ms: int) -> None:
        """Queue one record, no sooner than the throughput allows."""
        # Polling returns as soon as there was an answer to report.
        while wait_s := due_s(self._sent, self._throughput, time.monotonic() - self._began_s):
            self._producer.poll(wait_s)
        self._sent += 1

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._report(key, value, error, message)

        while True:
            try:
                self._producer.produce(
                    self._topic, value, key, timestamp=timestamp_ms, on_delivery=delivered
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def finish(self, timeout_s: float) -> None:
        """Wait for the last answers, and print the sums."""
        self._producer.flush(timeout_s + 1)
        event("shutdown_complete")
        elapsed_s = time.monotonic() - self._began_s
        event(
            "tool_data",
            sent=self._sent,
            acked=self._acked,
            target_throughput=self._throughput,
            avg_throughput=self._acked / elapsed_s,
        )

    def _report(
        self, key: str | None, value: str, error: KafkaError | None, message: Message
    ) -> None:
        if error is None:
            self._acked += 1
            event(
                "producer_send_success",
                key=key,
                value=value,
                offset=message.offset(),
                topic=message.topic(),
                partition=message.partition(),
            )
        else:
            event(
                "producer_send_error",
                key=key,
                value=value,
                exception=error.name(),
                message=describe(error),
                topic=self._topic,
            )
