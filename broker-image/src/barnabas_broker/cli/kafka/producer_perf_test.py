"""`kafka-producer-perf-test`: how fast records are taken, in the lines of Kafka's tool."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from barnabas_broker.cli.client import Connection, failures
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import Several, connected, refused, tool
from barnabas_broker.cli.perf import producing
from barnabas_broker.cli.perf.command import payloads
from barnabas_broker.cli.perf.measures import MEBIBYTE, rate
from barnabas_broker.cli.produce import open_producer

WINDOW_S = 5.0
# As many different values as make no broker or codec profit from repetition.
KINDS = 64


@tool("kafka-producer-perf-test")
@click.option("--topic", required=True)
@click.option("--num-records", type=click.IntRange(min=1), required=True)
@click.option("--record-size", type=click.IntRange(min=1))
@click.option("--payload-file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--payload-delimiter", default="\\n", help="Between the values of the file.")
@click.option("--throughput", type=float, required=True, help="Records a second; -1: no limit.")
@click.option("--producer-props", cls=Several, metavar="NAME=VALUE ...")
@click.option("--print-metrics", is_flag=True, help="Print the client's own figures at the end.")
@refused(
    "--transactional-id", "--transaction-duration-ms", "--transaction-id",
    why="records are sent outside of transactions",
)  # fmt: skip
@refused("--payload-monotonic", why="--payload-file has values of one's own")
@connected(config="--producer.config", from_properties="producer_props")
def main(topic: str, connection: Connection, **options: Any) -> None:
    """Send records and report throughput and latency."""
    if (options["record_size"] is None) == (options["payload_file"] is None):
        raise click.UsageError("Exactly one of --record-size and --payload-file is needed.")
    statistics: list[str] = []
    extra: dict[str, Any] = {"client.id": "perf-producer-client"}
    if options["print_metrics"]:
        extra |= {"statistics.interval.ms": 200, "stats_cb": lambda text: statistics.append(text)}
    producer = open_producer(connection, topic, producing.properties(extra))
    plan = producing.Plan(
        topic=topic,
        count=options["num_records"],
        payloads=_values(options),
        per_second=options["throughput"],
    )
    with failures(f"cannot send to {topic}"):
        sent = producing.send(producer, plan, _Windows(), timeout_s=connection.timeout_s)
    shown = ", ".join(
        f"{round(value)} ms {name}"
        for name, value in zip(
            ("50th", "95th", "99th", "99.9th"), sent.latencies.percentiles(), strict=True
        )
    )
    click.echo(
        f"{sent.delivered} records sent, {sent.records_per_s:f} records/sec "
        f"({sent.mebibytes_per_s:.2f} MB/sec), {_number(sent.latencies.mean_ms)} ms avg latency, "
        f"{sent.latencies.max_ms:.2f} ms max latency, {shown}."
    )
    if options["print_metrics"]:
        producer.poll(1.0)
        _metrics(statistics)
    producing.require_all(sent)


class _Windows:
    """Prints what happened in each five seconds."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._before = (0, 0, 0.0)

    def __call__(self, sent: producing.Sent) -> None:
        now_s = time.monotonic()
        if now_s - self._began_s < WINDOW_S:
            return
        count, size, total_ms = self._before
        records, seconds = sent.delivered - count, now_s - self._began_s
        mean = (sent.latencies.total_ms - total_ms) / records if records else float("nan")
        click.echo(
            f"{records} records sent, {rate(records, seconds):.1f} records/sec "
            f"({rate((sent.payload_bytes - size) / MEBIBYTE, seconds):.2f} MB/sec), "
            f"{mean:.1f} ms avg latency, {sent.latencies.max_ms:.1f} ms max latency."
        )
        self._before = (sent.delivered, sent.payload_bytes, sent.latencies.total_ms)
        self._began_s = now_s


def _number(value: float) -> str:
    return "NaN" if value != value else f"{value:.2f}"


def _values(options: dict[str, Any]) -> list[bytes]:
    if options["record_size"] is not None:
        return payloads(options["record_size"], KINDS)
    delimiter = options["payload_delimiter"].encode().decode("unicode_escape").encode()
    values: list[bytes] = options["payload_file"].read_bytes().split(delimiter)
    if values and not values[-1]:
        values.pop()
    if not values:
        raise CommandError(f"{options['payload_file']} is empty")
    return values


def _metrics(statistics: list[str]) -> None:
    """librdkafka's figures, in the two columns of Kafka's tool."""
    figures = json.loads(statistics[-1]) if statistics else {}
    rows = {name: value for name, value in figures.items() if isinstance(value, int | float)}
    width = max((len(name) for name in rows), default=0) + len("producer-metrics:")
    click.echo(f"\n{'Metric Name':{width}} Value")
    for name, value in sorted(rows.items()):
        click.echo(f"{'producer-metrics:' + name:{width}} : {value}")
