"""`kafka-verifiable-consumer`: a member of a group that prints what happens to it as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from barnabas_broker.cli.client import Connection, describe, failures
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.kafka.events import event
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_broker.cli.stopping import stop_flag

if TYPE_CHECKING:
    import threading

    from confluent_kafka import Consumer, Message, TopicPartition

BATCH_RECORDS: Final = 500
# How long a batch may take to fill; also how soon an interrupt is noticed.
POLL_S: Final = 0.1
ASSIGNORS: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


@tool("kafka-verifiable-consumer")
@click.option("--topic", required=True)
@click.option("--group-id", required=True)
@click.option("--group-instance-id", help="Static membership under this name.")
@click.option("--group-protocol", type=click.Choice(["classic", "consumer"], case_sensitive=False),
              default="classic")  # fmt: skip
@click.option("--group-remote-assignor", help="uniform or range, with the consumer protocol.")
@click.option("--max-messages", type=int, default=-1, help="Until interrupted below 0.")
@click.option("--session-timeout", type=click.IntRange(min=1), default=30000, metavar="MS")
@click.option("--verbose", is_flag=True, help="Print every record.")
@click.option("--enable-autocommit", is_flag=True, help="Instead of a commit for each batch.")
@click.option("--reset-policy", type=click.Choice(["earliest", "latest", "none"]),
              default="earliest")  # fmt: skip
@click.option("--assignment-strategy", default=next(iter(ASSIGNORS)), metavar="CLASS")
@connected("--broker-list", config="--consumer.config")
def main(topic: str, connection: Connection, **options: Any) -> None:
    """Read a topic as a member of a group, and print as JSON what happens."""
    properties = _properties(options)
    connection.knock()
    with failures("the client configuration is refused", InputError):
        from confluent_kafka import Consumer

        config = connection.config({**properties, "error_cb": connection.explain_error})
        consumer = Consumer(config)
    reading = _Reading(
        consumer,
        options["max_messages"],
        verbose=options["verbose"],
        commits=not options["enable_autocommit"],
    )
    event("startup_complete")
    try:
        with failures(f"cannot read {topic}"):
            consumer.subscribe([topic], on_assign=_assigned, on_revoke=_revoked, on_lost=_revoked)
            with stop_flag() as stopped:
                reading.run(stopped)
    finally:
        consumer.close()
        event("shutdown_complete")


def _properties(options: dict[str, Any]) -> dict[str, Any]:
    """The client properties of the options."""
    reset = options["reset_policy"]
    properties: dict[str, Any] = {
        "client.id": "verifiable-consumer",
        "group.id": options["group_id"],
        "enable.auto.commit": options["enable_autocommit"],
        "auto.offset.reset": "error" if reset == "none" else reset,
    }
    if options["group_instance_id"]:
        properties["group.instance.id"] = options["group_instance_id"]
    if options["group_protocol"].lower() == "consumer":
        properties["group.protocol"] = "consumer"
        if options["group_remote_assignor"]:
            properties["group.remote.assignor"] = options["group_remote_assignor"]
        return properties
    strategy = options["assignment_strategy"]
    if strategy not in ASSIGNORS:
        raise InputError(
            f"--assignment-strategy {strategy} is not supported: {', '.join(ASSIGNORS)} are"
        )
    return properties | {
        "partition.assignment.strategy": ASSIGNORS[strategy],
        "session.timeout.ms": options["session_timeout"],
    }


def _assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
    event("partitions_assigned", partitions=_named(partitions))


def _revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
    event("partitions_revoked", partitions=_named(partitions))


def _named(partitions: Sequence[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partition": each.partition} for each in partitions]


class _Reading:
    """Reads and prints until it is enough."""

    def __init__(self, consumer: Consumer, limit: int, *, verbose: bool, commits: bool) -> None:
        self._consumer = consumer
        self._limit = limit
        self._verbose = verbose
        self._commits = commits
        self._count = 0

    def run(self, stopped: threading.Event) -> None:
        """Until it is enough, or interrupted; CommandError where reading cannot go on."""
        while not stopped.is_set() and (self._limit < 0 or self._count < self._limit):
            wanted = BATCH_RECORDS
            if self._limit >= 0:
                wanted = min(wanted, self._limit - self._count)
            messages = self._consumer.consume(wanted, POLL_S)
            for message in messages:
                if (error := message.error()) is not None and not error.retriable():
                    raise CommandError(f"cannot read {message.topic()}: {describe(error)}")
            if records := [each for each in messages if each.error() is None]:
                self._report(records)

    def _report(self, records: Sequence[Message]) -> None:
        from confluent_kafka import TopicPartition

        by_partition: dict[tuple[str, int], list[Message]] = {}
        for record in records:
            place = (record.topic() or "", record.partition() or 0)
            by_partition.setdefault(place, []).append(record)
            if self._verbose:
                _report_record(record)
        self._count += len(records)
        read = {
            place: (_offset(each[0]), _offset(each[-1])) for place, each in by_partition.items()
        }
        summaries = [
            {
                "topic": place[0],
                "partition": place[1],
                "count": len(by_partition[place]),
                "minOffset": first,
                "maxOffset": last,
            }
            for place, (first, last) in read.items()
        ]
        event("records_consumed", count=len(records), partitions=summaries)
        if self._commits:
            self._commit([TopicPartition(*place, last + 1) for place, (_, last) in read.items()])

    def _commit(self, offsets: list[TopicPartition]) -> None:
        from confluent_kafka import KafkaException

        committed = [
            {"topic": each.topic, "partition": each.partition, "offset": each.offset}
            for each in offsets
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            reason = describe(error.args[0])
            event("offsets_committed", offsets=committed, error=reason, success=False)
        else:
            event("offsets_committed", offsets=committed, success=True)


def _report_record(record: Message) -> None:
    event(
        "record_data",
        key=_text(record.key()),
        value=_text(record.value()),
        topic=record.topic(),
        partition=record.partition(),
        offset=record.offset(),
    )


def _offset(record: Message) -> int:
    return record.offset() or 0


def _text(data: str | bytes | None) -> str | None:
    return data.decode(errors="replace") if isinstance(data, bytes) else data
