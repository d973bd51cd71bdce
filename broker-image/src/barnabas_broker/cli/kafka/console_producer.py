"""`kafka-console-producer`: lines in, records out."""

from __future__ import annotations

import sys
from typing import Any

import click

from barnabas_broker.cli.client import Connection, failures
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import connected, refused, tool
from barnabas_broker.cli.produce import Sender, create_producer, line_format, line_record

# The option of Kafka's tool, librdkafka's property, and by how much the one's unit is smaller.
TUNING: dict[str, tuple[str, int]] = {
    "batch_size": ("batch.size", 1),
    "timeout": ("linger.ms", 1),
    "message_send_max_retries": ("retries", 1),
    "retry_backoff_ms": ("retry.backoff.ms", 1),
    "request_timeout_ms": ("request.timeout.ms", 1),
    "metadata_expiry_ms": ("metadata.max.age.ms", 1),
    "max_memory_bytes": ("queue.buffering.max.kbytes", 1024),
    "max_partition_memory_bytes": ("batch.size", 1),
    "socket_buffer_size": ("socket.send.buffer.bytes", 1),
}


@tool("kafka-console-producer")
@click.option("--topic", required=True)
@click.option(
    "--compression-codec",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    is_flag=False,
    flag_value="gzip",
    help="gzip if nothing follows.",
)
@click.option("--request-required-acks", type=click.Choice(["all", "-1", "0", "1"]))
@click.option("--sync", is_flag=True, help="Wait for each record before the next.")
@click.option(
    "--property",
    "reader_properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="parse.key, key.separator, parse.headers, headers.delimiter, null.marker, ...",
)
@click.option("--batch-size", type=int)
@click.option("--timeout", type=int, default=1000, help="How long to gather a batch, in ms.")
@click.option("--message-send-max-retries", type=int)
@click.option("--retry-backoff-ms", type=int)
@click.option("--request-timeout-ms", type=int)
@click.option("--metadata-expiry-ms", type=int)
@click.option("--max-memory-bytes", type=int)
@click.option("--max-partition-memory-bytes", type=int)
@click.option("--socket-buffer-size", type=int)
@click.option("--max-block-ms", type=int)
@refused(
    "--line-reader", "--reader-config", "--key-serializer", "--value-serializer",
    why="lines are read as they are; --property changes how",
)  # fmt: skip
@connected("--broker-list", config="--producer.config", properties="--producer-property")
def main(topic: str, sync: bool, connection: Connection, **options: Any) -> None:
    """Send each line of standard input as a record."""
    given = line_format(options["reader_properties"])
    properties = {
        name: max(1, options[option] // unit) if unit > 1 else options[option]
        for option, (name, unit) in TUNING.items()
        if options[option] is not None
    }
    if options["compression_codec"]:
        properties["compression.type"] = options["compression_codec"]
    if options["request_required_acks"] is not None:
        properties["acks"] = options["request_required_acks"]
    given_properties = {"client.id": "console-producer", **properties}
    producer, find_topic = create_producer(connection, topic, given_properties)
    sender = Sender(producer, find_topic, topic, -1)
    prompt = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        with failures(f"cannot send to {topic}"):
            for number, line in enumerate(_lines(prompt), 1):
                sender.send(*line_record(given, number, line))
                if sync and producer.flush(connection.timeout_s):
                    raise CommandError(f"line {number}: no answer in time")
    except KeyboardInterrupt:
        if sender.finds_topic:
            raise
        # Else it is how a person ends the input; what was typed is still sent.
    finally:
        sender.finish(connection.timeout_s)


def _lines(prompt: bool) -> Any:
    while True:
        if prompt:
            click.echo(">", nl=False)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        yield line
