"""`kafka-consumer-perf-test`: how fast records are read, as Kafka's tool prints it."""

from __future__ import annotations

import time
from typing import Any

import click

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.kafka.tool import connected, note, refused, tool
from barnabas_broker.cli.perf import consuming
from barnabas_broker.cli.perf.command import new_group, open_consumer
from barnabas_broker.cli.perf.measures import rate

HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


@tool("kafka-consumer-perf-test")
@click.option("--topic", required=True)
@click.option("--messages", type=click.IntRange(min=1), required=True)
@click.option("--group", help="The consumer group; a new one otherwise.")
@click.option("--fetch-size", type=click.IntRange(min=1), default=1 << 20)
@click.option("--socket-buffer-size", type=click.IntRange(min=0), default=2 << 20)
@click.option("--timeout", type=int, default=10_000, help="Stop when nothing came for so many ms.")
@click.option("--from-latest", is_flag=True, help="Where the group has no offset yet.")
@click.option("--hide-header", is_flag=True)
@click.option("--message-size", type=int, help="Not needed; sizes are those of the records.")
@click.option("--threads", "--num-fetch-threads", type=int, hidden=True)
@refused("--show-detailed-stats", "--print-metrics", "--reporting-interval", "--date-format",
         why="one line at the end reports everything")  # fmt: skip
@connected("--broker-list", config="--consumer.config", properties="--consumer-property")
def main(topic: str, messages: int, connection: Connection, **options: Any) -> None:
    """Read records and report the throughput as a line of CSV."""
    if options["message_size"] is not None:
        note("--message-size is not needed: the sizes are those of the records")
    if not options["hide_header"]:
        click.echo(HEADER)
    properties = {
        "client.id": "perf-consumer-client",
        "group.id": options["group"] or new_group("perf-consumer"),
        "auto.offset.reset": "latest" if options["from_latest"] else "earliest",
        "max.partition.fetch.bytes": options["fetch_size"],
        "socket.receive.buffer.bytes": options["socket_buffer_size"],
    }
    began = time.time()
    consumer = open_consumer(connection, properties)
    try:
        found = consuming.read(
            consumer, topic, messages, lambda _: None, idle_s=options["timeout"] / 1000
        )
    finally:
        consumer.close()
    if found.timed_out:
        click.echo(
            "WARNING: Exiting before consuming the expected number of messages: timeout "
            f"({options['timeout']} ms) exceeded. You can use the --timeout option to increase "
            "the timeout."
        )
    fetching_s = found.fetching_s
    click.echo(
        f"{_moment(began)}, {_moment(began + found.elapsed_s)}, {found.mebibytes:.4f}, "
        f"{found.mebibytes_per_s:.4f}, {found.count}, {found.records_per_s:.4f}, "
        f"{found.joining_s * 1000:.0f}, {fetching_s * 1000:.0f}, "
        f"{rate(found.mebibytes, fetching_s):.4f}, {rate(found.count, fetching_s):.4f}"
    )


def _moment(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    return f"{whole}:{int(seconds * 1000) % 1000:03d}"
