"""`kafka-console-consumer`: the records of topics as lines."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection, describe, failures
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.kafka.formatting import DEFAULT, STRINGS, Writer, writer
from barnabas_broker.cli.kafka.tool import connected, note, refused, tool
from barnabas_broker.cli.properties import parse_assignments

if TYPE_CHECKING:
    from confluent_kafka import Consumer

BATCH_RECORDS = 500
# How long a batch may take to fill; also how soon an interrupt or the timeout is noticed.
POLL_S = 0.1
INTERRUPTED = 130


@tool("kafka-console-consumer")
@click.option("--topic")
@click.option("--include", "--whitelist", "include", help="A regular expression for topics.")
@click.option("--partition", type=click.IntRange(min=0), help="Without a group.")
@click.option("--offset", metavar="N|earliest|latest", help="Where in --partition to begin.")
@click.option("--from-beginning", is_flag=True, help="Where the group has no offset yet.")
@click.option("--max-messages", type=int, help="Stop after so many records.")
@click.option("--timeout-ms", type=int, help="Stop when no record has come for so long.")
@click.option("--group", help="The consumer group; a new one otherwise.")
@click.option("--isolation-level", default="read_uncommitted",
              type=click.Choice(["read_uncommitted", "read_committed"]))  # fmt: skip
@click.option("--formatter", default=DEFAULT)
@click.option("--property", "assignments_of_formatter", multiple=True, metavar="NAME=VALUE",
              help="print.key, print.offset, key.separator, ...")  # fmt: skip
@click.option("--key-deserializer", type=click.Choice([STRINGS]), hidden=True)
@click.option("--value-deserializer", type=click.Choice([STRINGS]), hidden=True)
@click.option("--new-consumer", is_flag=True, hidden=True)
@click.option("--skip-message-on-error", is_flag=True, hidden=True)
@refused("--enable-systest-events", "--formatter-config", why="--property has what formats")
@connected(
    "--broker-list", zookeeper=True, config="--consumer.config", properties="--consumer-property"
)
def main(connection: Connection, zookeeper: str | None, **options: Any) -> None:
    """Print the records of a topic until interrupted, or until it is enough."""
    if (options["topic"] is None) == (options["include"] is None):
        raise click.UsageError("Exactly one of --topic and --include is needed.")
    if options["offset"] is not None and options["partition"] is None:
        raise click.UsageError("The partition is required when offset is specified.")
    if options["partition"] is not None and options["topic"] is None:
        raise click.UsageError("--partition needs --topic.")
    given = parse_assignments(options["assignments_of_formatter"], "--property")
    write = writer(options["formatter"], given)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    consumer = _consumer(connection, options)
    reading = _Reading(options["max_messages"], options["timeout_ms"])
    try:
        with failures("cannot read"):
            _begin(consumer, options)
        reading.run(consumer, write)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader has seen enough, which is fine. Python must not flush to it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        consumer.close()
        click.echo(f"Processed a total of {reading.count} messages", err=True)


class _Reading:
    """Reads and prints until it is enough."""

    def __init__(self, limit: int | None, timeout_ms: int | None) -> None:
        self.limit = limit if limit is not None and limit >= 0 else None
        self.timeout_s = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
        self.count = 0

    def run(self, consumer: Consumer, write: Writer) -> None:
        """CommandError where reading cannot go on."""
        from confluent_kafka import KafkaError

        out = sys.stdout.buffer
        last_s = time.monotonic()
        warned = False
        while self.limit is None or self.count < self.limit:
            wanted = BATCH_RECORDS
            if self.limit is not None:
                wanted = min(wanted, self.limit - self.count)
            for message in consumer.consume(wanted, POLL_S):
                error = message.error()
                if error is None:
                    out.write(write(message))
                    self.count += 1
                    last_s = time.monotonic()
                elif error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise CommandError(f"cannot read {message.topic()}: {describe(error)}")
                elif not warned:  # It may be created yet, as Kafka's own consumer hopes.
                    note(f"there is no topic {message.topic()}")
                    warned = True
            out.flush()
            if self.timeout_s is not None and time.monotonic() - last_s > self.timeout_s:
                note(f"no record within {self.timeout_s:g} s")
                return


def _consumer(connection: Connection, options: dict[str, Any]) -> Consumer:
    from confluent_kafka import Consumer

    connection.knock()
    group = options["group"] or connection.properties.get("group.id")
    if options["group"] and connection.properties.get("group.id", group) != group:
        raise InputError("the group is named twice: by --group and as group.id")
    config: dict[str, Any] = {
        "client.id": "console-consumer",
        "group.id": group or f"console-consumer-{random.randrange(100_000)}",  # noqa: S311
        "auto.offset.reset": "earliest" if options["from_beginning"] else "latest",
        "isolation.level": options["isolation_level"],
        "allow.auto.create.topics": True,
        "error_cb": connection.explain_error,
    }
    if not group:
        config["enable.auto.commit"] = False
    with failures("the client configuration is refused", InputError):
        return Consumer(connection.config(config))


def _begin(consumer: Consumer, options: dict[str, Any]) -> None:
    """Take one partition from an offset, or join the group."""
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    if options["partition"] is None:
        pattern = options["include"]
        consumer.subscribe([options["topic"] if pattern is None else f"^({pattern})$"])
        return
    offset = options["offset"] or ("earliest" if options["from_beginning"] else "latest")
    words = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}
    if offset not in words and not offset.isdigit():
        raise InputError(f"--offset {offset}: not earliest, latest or a number")
    start = words[offset] if offset in words else int(offset)
    consumer.assign([TopicPartition(options["topic"], options["partition"], start)])
