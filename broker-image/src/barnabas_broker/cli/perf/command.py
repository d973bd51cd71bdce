"""`barnabas perf`: how fast a cluster takes records, gives them back, and carries single ones."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection, connection_options, failures
from barnabas_broker.cli.completion import topic_names
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.output import output_option, print_json
from barnabas_broker.cli.perf import consuming, latency, plot, producing
from barnabas_broker.cli.perf.measures import Latencies, histogram
from barnabas_broker.cli.produce import open_producer
from barnabas_broker.cli.time_limits import Seconds

if TYPE_CHECKING:
    from confluent_kafka import Consumer

NAMES = ("p50", "p95", "p99", "p99.9")
BAR_WIDTH = 40

figures_option = output_option(plain=("text",))
records_option = click.option(
    "--records", type=click.IntRange(min=1), default=500_000, show_default=True, help="How many."
)
size_option = click.option(
    "--size",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Bytes of each value.",
)
plot_option = click.option(
    "--plot", "picture", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the latencies as a picture (.png, .svg, .pdf).",
)  # fmt: skip
acks_option = click.option(
    "--acks", type=click.Choice(["all", "-1", "0", "1"]), default="all", show_default=True
)


@click.group()
def perf() -> None:
    """Measure how fast a cluster is."""


@perf.command()
@click.argument("topic", shell_complete=topic_names)
@records_option
@size_option
@click.option("--throughput", type=float, default=-1, help="Records a second; no limit otherwise.")
@acks_option
@click.option("--compression", default="none", show_default=True,
              type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]))  # fmt: skip
@plot_option
@figures_option
@connection_options
def produce(
    topic: str,
    records: int,
    size: int,
    throughput: float,
    picture: Path | None,
    output: str,
    connection: Connection,
    **options: Any,
) -> None:
    """Send records as fast as it goes, and time each until it is acknowledged."""
    if picture:
        plot.check(picture)
    shape = {"acks": options["acks"], "compression.type": options["compression"]}
    producer = open_producer(connection, topic, producing.properties(shape))
    plan = producing.Plan(
        topic=topic, count=records, payloads=payloads(size), per_second=throughput
    )
    with _progress("sending", records) as advance, failures(f"cannot send to {topic}"):
        sent = producing.send(
            producer, plan, lambda now: advance(now.delivered), timeout_s=connection.timeout_s
        )
    producing.require_all(sent)
    figures = {
        "records": sent.delivered,
        "seconds": round(sent.elapsed_s, 3),
        "records_per_s": round(sent.records_per_s, 1),
        "mib_per_s": round(sent.mebibytes_per_s, 2),
    }
    _report(output, figures, {"acknowledged": sent.latencies})
    if picture:
        _draw(picture, f"{records} records of {size} bytes", {"acknowledged": sent.latencies})


@perf.command()
@click.argument("topic", shell_complete=topic_names)
@records_option
@click.option("--group", help="The consumer group; a new one otherwise.")
@click.option("--idle-timeout", "idle_s", type=Seconds(), default=10.0, show_default=True,
              help="Give up when no record came for so long; joining may take 30 s.")  # fmt: skip
@figures_option
@connection_options
def consume(
    topic: str, records: int, group: str | None, idle_s: float, output: str, connection: Connection
) -> None:
    """Read a topic from its beginning as fast as it goes."""
    consumer = open_consumer(connection, {"group.id": group or new_group("barnabas-perf")})
    try:
        with _progress("reading", records) as advance:
            found = consuming.read(
                consumer, topic, records, lambda now: advance(now.count), idle_s=idle_s
            )
    finally:
        consumer.close()
    figures = {
        "records": found.count,
        "seconds": round(found.elapsed_s, 3),
        "records_per_s": round(found.records_per_s, 1),
        "mib_per_s": round(found.mebibytes_per_s, 2),
        "joining_seconds": round(found.joining_s, 3),
        "records_per_s_after_joining": round(found.count / found.fetching_s, 1)
        if found.fetching_s
        else 0.0,
    }
    _report(output, figures, {})
    if found.timed_out:
        if not found.joining_s:
            raise CommandError(f"the group assigned no partition in {found.elapsed_s:.0f} s")
        raise CommandError(f"{found.count} of {records} records came; then none for {idle_s:g} s")


@perf.command("latency")
@click.argument("topic", shell_complete=topic_names)
@click.option("--records", type=click.IntRange(min=1), default=1000, show_default=True)
@size_option
@acks_option
@plot_option
@figures_option
@connection_options
def latency_(
    topic: str,
    records: int,
    size: int,
    acks: str,
    picture: Path | None,
    output: str,
    connection: Connection,
) -> None:
    """Send one record at a time, and time it until it is acknowledged and until it is read.

    Best on a topic of its own: no other client may write to it meanwhile.
    """
    from confluent_kafka import OFFSET_END, TopicPartition

    if picture:
        plot.check(picture)
    producer = open_producer(connection, topic, producing.properties({"acks": acks}))
    consumer = open_consumer(connection, {"group.id": "barnabas-perf", "fetch.wait.max.ms": 500})
    try:
        there = sorted(connection.metadata(consumer, topic=topic).topics[topic].partitions)
        with failures(f"cannot read {topic}"):
            ends = [
                TopicPartition(topic, number, consumer.get_watermark_offsets(
                    TopicPartition(topic, number), timeout=connection.timeout_s)[1])
                for number in there
            ]  # fmt: skip
            consumer.assign(ends or [TopicPartition(topic, 0, OFFSET_END)])
        plan = (topic, records, payloads(size)[0])
        with _progress("one by one", records) as advance, failures(f"cannot send to {topic}"):
            ways = latency.measure(
                producer, consumer, plan, advance, timeout_s=connection.timeout_s
            )
    finally:
        consumer.close()
    series = {"acknowledged": ways.acknowledged, "read": ways.read}
    _report(output, {"records": records}, series)
    if picture:
        _draw(picture, f"{records} records of {size} bytes, one at a time", series)


def payloads(size: int, kinds: int = 1) -> list[bytes]:
    """Values of capital letters, as Kafka's tool makes them; the same in every run."""
    chance = random.Random(0)  # noqa: S311 - reproducible on purpose
    letters = bytes(range(65, 91))
    return [bytes(chance.choices(letters, k=size)) for _ in range(kinds)]


def new_group(beginning: str) -> str:
    """The id of a new group."""
    return f"{beginning}-{random.randrange(100_000)}"  # noqa: S311


def open_consumer(connection: Connection, properties: Mapping[str, Any]) -> Consumer:
    """A consumer that begins at the beginning and commits nothing."""
    from confluent_kafka import Consumer

    connection.knock()
    config = {
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "check.crcs": False,
        "error_cb": connection.explain_error,
        **properties,
    }
    with failures("the client configuration is refused", InputError):
        return Consumer(connection.config(config))


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; without one nothing is shown."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    with Progress(
        "{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=console, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def _report(output: str, figures: Mapping[str, float], series: Mapping[str, Latencies]) -> None:
    if output == "json":
        latencies = {name: _figures(each) for name, each in series.items()}
        print_json({**figures, **({"latency_ms": latencies} if latencies else {})})
        return
    for name, value in figures.items():
        click.echo(f"{name.replace('_', ' '):28} {value:,}")
    for name, each in series.items():
        shown = "  ".join(f"{key} {value:.3f}" for key, value in _figures(each).items())
        click.echo(f"{'ms until ' + name:28} {shown}")
    for name, each in series.items():
        click.echo(f"\nms until {name}")
        _bars(each)


def _figures(latencies: Latencies) -> dict[str, float]:
    """Mean, percentiles and maximum in milliseconds."""
    values = zip(NAMES, latencies.percentiles(), strict=True)
    shown = {"mean": latencies.mean_ms, **dict(values), "max": latencies.max_ms}
    return {name: round(value, 3) for name, value in shown.items()}


def _bars(latencies: Latencies) -> None:
    """The histogram in characters."""
    bins = histogram(latencies.samples())
    most = max((each.count for each in bins), default=0)
    for each in bins:
        bar = "█" * round(BAR_WIDTH * each.count / most)
        click.echo(f"{each.low:10.3f} - {each.high:10.3f}  {bar} {each.count}")


def _draw(path: Path, title: str, series: Mapping[str, Latencies]) -> None:
    plot.write(path, title, {name: each.samples() for name, each in series.items()})
    click.echo(f"Wrote {path}.", err=True)
