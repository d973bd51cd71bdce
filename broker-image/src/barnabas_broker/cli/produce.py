"""`barnabas produce`: lines in, records out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection, connection_options, describe, failures
from barnabas_broker.cli.completion import topic_names
from barnabas_broker.cli.errors import CommandError, InputError, similar
from barnabas_broker.cli.output import counted, done, results_option
from barnabas_broker.cli.properties import parse_assignments

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

# The limit is the broker's and the topic's to set; this is as far as the client library can go.
MESSAGE_BYTES_MAX = 1_000_000_000

Header = tuple[str, str | bytes | None]
Headers = list[Header]


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How a line becomes a record; the names are those of Kafka's console producer."""

    parse_key: bool = False
    key_separator: bytes = b"\t"
    parse_headers: bool = False
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    ignore_error: bool = False
    null_marker: bytes | None = None

    def parse(self, line: bytes) -> tuple[Headers, bytes | None, bytes | None]:
        """Headers, key and value of a line; ValueError when a separator is missing."""
        headers: Headers = []
        key: bytes | None = None
        if self.parse_headers:
            text, line = self._split(line, self.headers_delimiter, "headers delimiter")
            if text is not None and text != self.null_marker:
                parts = text.split(self.headers_separator)
                headers = [self._header(part) for part in parts if part]
        if self.parse_key:
            key, line = self._split(line, self.key_separator, "key separator")
        return headers, self.nullable(key), self.nullable(line)

    def _split(self, line: bytes, separator: bytes, what: str) -> tuple[bytes | None, bytes]:
        """The parts before and after the separator; nothing before one that is forgiven."""
        first, found, rest = line.partition(separator)
        if found:
            return first, rest
        if self.ignore_error:
            return None, line
        raise ValueError(f"no {what} {separator.decode(errors='replace')!r}")

    def _header(self, text: bytes) -> tuple[str, bytes | None]:
        name, value = self._split(text, self.headers_key_separator, "header key separator")
        if name is None:
            return value.decode(), None
        return name.decode(), self.nullable(value)

    def nullable(self, data: bytes | None) -> bytes | None:
        """The data, or null where it is the null marker."""
        return None if data == self.null_marker else data


class Sender:
    """Sends records and keeps count of what the broker said of them.

    `find_topic` is called before the first: nothing is created where nothing is sent.
    """

    def __init__(
        self, producer: Producer, find_topic: Callable[[], None], topic: str, partition: int
    ) -> None:
        self._producer = producer
        self._find_topic = find_topic
        self.finds_topic = False
        """Whether it is at that: who interrupts it then does not end the input."""
        self._topic = topic
        self._partition = partition
        self.sent = 0
        self.delivered = 0
        self.failed = 0
        self.first_error: KafkaError | None = None
        self._first_failed = 0

    def send(self, headers: Headers, key: bytes | None, value: bytes | None) -> None:
        """Queue one record; where the queue is full, wait for deliveries to make room."""
        number = self.sent + 1
        if number == 1:
            self.finds_topic = True
            self._find_topic()
            self.finds_topic = False

        def delivered(error: KafkaError | None, _: Message) -> None:
            self._delivered(number, error)

        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=value,
                    key=key,
                    headers=headers,
                    partition=self._partition,
                    on_delivery=delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                self.sent = number
                self._producer.poll(0)
                return

    def flush(self, timeout_s: float) -> int:
        """Wait for the last deliveries; returns how many there were none of."""
        return self._producer.flush(timeout_s + 1)

    def finish(self, timeout_s: float) -> None:
        """Wait for the last deliveries; `CommandError` when not every record arrived."""
        waiting = self.flush(timeout_s)
        if self.failed or waiting:
            lost = f"{self.failed + waiting} of {self.sent} records were not delivered"
            if self.first_error is None:
                raise CommandError(f"{lost}: no answer in time")
            raise CommandError(
                f"{lost}, record {self._first_failed} first: {describe(self.first_error)}"
            )

    def _delivered(self, number: int, error: KafkaError | None) -> None:
        if error is None:
            self.delivered += 1
            return
        self.failed += 1
        if self.first_error is None or number < self._first_failed:
            self.first_error, self._first_failed = error, number


@click.command()
@click.argument("topic", shell_complete=topic_names)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Where the lines come from; standard input otherwise.",
)
@click.option("--key-separator", help="What stands between key and value; lines have keys then.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="On every record.")
@click.option("--null-marker", help="What stands for a null key, value or header value.")
@click.option("--partition", type=click.IntRange(min=0), help="Instead of the key's partition.")
@click.option(
    "--acks",
    type=click.Choice(["all", "-1", "0", "1"]),
    default="all",
    show_default=True,
    help="Who must have a record before it counts as sent.",
)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
)
@click.option(
    "--property",
    "reader_properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A reader property of Kafka's console producer, such as parse.key=true.",
)
@click.option("--quiet", is_flag=True, help="Do not report what was sent.")
@results_option
@connection_options
def produce(
    topic: str,
    path: Path | None,
    headers: tuple[str, ...],
    partition: int | None,
    quiet: bool,
    connection: Connection,
    **options: Any,
) -> None:
    """Send lines as records.

    The lines are those of standard input or of a file. On a terminal a prompt asks for them, and
    Ctrl-D ends them. Where something fails, what was sent up to then is reported.
    """
    record_format = line_format(
        options["reader_properties"], options["key_separator"], options["null_marker"]
    )
    common: Headers = [
        (name, record_format.nullable(value.encode()))
        for name, value in parse_assignments(headers, "--header").items()
    ]
    shape = {"acks": options["acks"], "compression.type": options["compression"]}
    producer, find_topic = create_producer(connection, topic, shape)
    sender = Sender(producer, find_topic, topic, -1 if partition is None else partition)
    try:
        with _lines(path) as lines, failures(f"cannot send to {topic}"):
            for number, line in enumerate(lines, 1):
                sender.send(*line_record(record_format, number, line, common))
    except KeyboardInterrupt:
        if sender.finds_topic:
            raise
        # Else it is how a person ends the input; what was typed is still sent.
    except CommandError:
        sender.flush(connection.timeout_s)
        _report_sent(sender, topic)
        raise
    try:
        sender.finish(connection.timeout_s)
    except CommandError:
        _report_sent(sender, topic)
        raise
    if not quiet:
        result = {"topic": topic, "sent": sender.delivered}
        done(f"Sent {counted(sender.delivered, 'record')} to {topic}.", result, err=True)


def _report_sent(sender: Sender, topic: str) -> None:
    """What has arrived although the command fails, so that it is not sent twice."""
    if not sender.sent:
        return
    result = {"topic": topic, "sent": sender.delivered, "failed": sender.sent - sender.delivered}
    records = counted(sender.sent, "record")
    done(f"Sent {sender.delivered} of {records} to {topic}.", result, err=True)


def line_record(
    record_format: LineFormat, number: int, line: bytes, common: Sequence[Header] = ()
) -> tuple[Headers, bytes | None, bytes | None]:
    """The record in one line; the error says which line it was."""
    try:
        headers, key, value = record_format.parse(line.removesuffix(b"\n").removesuffix(b"\r"))
    except ValueError as error:
        raise CommandError(f"line {number}: {error}") from None
    return [*common, *headers], key, value


def open_producer(connection: Connection, topic: str, properties: Mapping[str, Any]) -> Producer:
    """A producer that has seen the topic, whether it was there or the broker made it just now."""
    producer, find_topic = create_producer(connection, topic, properties)
    find_topic()
    return producer


def create_producer(
    connection: Connection, topic: str, properties: Mapping[str, Any]
) -> tuple[Producer, Callable[[], None]]:
    """A producer that reaches a broker, and what finds the topic, which the broker may create."""
    from confluent_kafka import KafkaError, Producer

    connection.knock()
    errors: list[KafkaError] = []
    config = connection.config(
        {
            "partitioner": "murmur2_random",  # The Java clients': the same key, the same partition.
            "message.max.bytes": MESSAGE_BYTES_MAX,
            "message.timeout.ms": int(connection.timeout_s * 1000),
            "error_cb": errors.append,
            **properties,
        }
    )
    with failures("the client configuration is refused", InputError):
        producer = Producer(config)

    def find_topic() -> None:
        found = connection.metadata(producer, errors, topic).topics[topic]
        if found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            near = similar(topic, connection.metadata(producer, errors).topics)
            how = near or f"; create it with `barnabas topics create {topic}`"
            raise CommandError(
                f"there is no topic {topic}, and the broker does not create any{how}"
            )

    return producer, find_topic


@contextmanager
def _lines(path: Path | None) -> Iterator[Iterable[bytes]]:
    """The input; a file is closed afterwards."""
    if path is None and sys.stdin.isatty():
        yield _prompted()
    elif path is None:
        yield sys.stdin.buffer
    else:
        with path.open("rb") as lines:
            yield lines


def _prompted() -> Iterator[bytes]:
    """The lines that a person types, each after a prompt, which is not part of the output."""
    click.echo("One record a line; Ctrl-D ends them.", err=True)
    while True:
        click.echo("> ", err=True, nl=False)
        if not (line := sys.stdin.buffer.readline()):
            click.echo(err=True)
            return
        yield line


READER_PROPERTIES = {
    "parse.key",
    "key.separator",
    "parse.headers",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "ignore.error",
    "null.marker",
}


def line_format(
    properties: Sequence[str], key_separator: str | None = None, null_marker: str | None = None
) -> LineFormat:
    """The format out of Kafka's property names and of the short options; the latter win."""
    given = parse_assignments(properties, "--property")
    if unknown := sorted(set(given) - READER_PROPERTIES):
        names = ", ".join(sorted(READER_PROPERTIES))
        raise InputError(f"--property {unknown[0]} is not known; there are {names}")
    if key_separator is not None:
        given |= {"parse.key": "true", "key.separator": key_separator}
    if null_marker is not None:
        given["null.marker"] = null_marker
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name.startswith("parse.") or name == "ignore.error":
            fields[name.replace(".", "_")] = value.strip().lower() == "true"
        else:
            # Shells make a tab hard to type.
            fields[name.replace(".", "_")] = value.replace("\\t", "\t").encode()
    return LineFormat(**fields)
