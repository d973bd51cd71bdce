"""`kafka-get-offsets`, which is `kafka-run-class kafka.tools.GetOffsetShell`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import connected, refused, tool
from barnabas_broker.cli.offsets import list_offsets, parse_moment, parse_partitions

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata

INTERNAL = ("__consumer_offsets", "__transaction_state")


@tool("kafka-get-offsets")
@click.option("--topic", help="A regular expression; all topics otherwise.")
@click.option("--partitions", metavar="N,N", help="All partitions otherwise.")
@click.option(
    "--topic-partitions", metavar="TOPIC:PARTITIONS,...", help="Such as orders:0-3,returns:1."
)
@click.option("--time", "moment", default="latest", help="-1 latest, -2 earliest, -3, or a time.")
@click.option("--exclude-internal-topics", is_flag=True)
@refused("--offsets", "--max-wait-ms", why="brokers no longer answer in several offsets")
@connected("--broker-list")
def main(
    topic: str | None,
    partitions: str | None,
    topic_partitions: str | None,
    moment: str,
    exclude_internal_topics: bool,
    connection: Connection,
) -> None:
    """Print topic:partition:offset for partitions."""
    if topic_partitions and (topic or partitions):
        raise click.UsageError("--topic-partitions cannot be used with --topic or --partitions")
    when = parse_moment(moment)
    client, metadata = connection.admin()
    if topic_partitions:
        wanted = [pair for part in _parts(topic_partitions) for pair in _select(metadata, *part)]
    else:
        wanted = list(_select(metadata, topic or ".*", partitions))
    if exclude_internal_topics:
        wanted = [(name, number) for name, number in wanted if name not in INTERNAL]
    if not wanted:
        raise CommandError("Could not match any topic-partitions with the specified filters")
    for (name, number), future in list_offsets(connection, client, wanted, when):
        found: Any = connection.answer(future)
        click.echo(f"{name}:{number}:{found.offset if found.offset >= 0 else ''}")


def _parts(text: str) -> list[tuple[str, str | None]]:
    """`a:0-3,b:1` as patterns of topics, each with its partitions."""
    parts = []
    for part in text.split(","):
        name, colon, numbers = part.partition(":")
        parts.append((name or ".*", numbers if colon and numbers else None))
    return parts


def _select(
    metadata: ClusterMetadata, pattern: str, partitions: str | None
) -> Iterator[tuple[str, int]]:
    """What there is of it, in the order in which Kafka's tool prints: that of the names as text."""
    numbers = parse_partitions(partitions) if partitions else None
    try:
        matches = re.compile(pattern.replace(",", "|")).fullmatch
    except re.error as error:
        raise CommandError(f"{pattern} is an invalid regex: {error}") from None
    there = (
        (name, number)
        for name, topic in metadata.topics.items()
        if matches(name)
        for number in topic.partitions
        if numbers is None or number in numbers
    )
    return iter(sorted(there, key=lambda pair: (pair[0], str(pair[1]))))
