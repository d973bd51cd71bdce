"""`barnabas offsets`: where partitions begin and end, and where a moment is in them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection, connection_options, failures
from barnabas_broker.cli.errors import Attempts, CommandError, InputError, similar
from barnabas_broker.cli.output import output_option, print_json, print_table

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

# Kafka's own numbers for moments that have no timestamp.
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
WORDS = {"latest": LATEST, "earliest": EARLIEST, "max-timestamp": MAX_TIMESTAMP}


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("selections", nargs=-1, metavar="[TOPIC[:PARTITIONS]]...")
@click.option(
    "--time",
    "moment",
    default="latest",
    show_default=True,
    metavar="-1|-2|-3|TIMESTAMP",
    help=(
        "latest (-1), earliest (-2), max-timestamp (-3), milliseconds since 1970, "
        "or a date such as 2024-05-01T12:00+02:00."
    ),
)
@click.option("--exclude-internal", is_flag=True, help="Leave out the brokers' own topics.")
@output_option(plain=("table", "plain"))
@connection_options
def offsets(
    selections: tuple[str, ...],
    moment: str,
    exclude_internal: bool,
    output: str,
    connection: Connection,
) -> None:
    """Look up offsets: first, next, or by time.

    One for each partition of the named topics, or of all topics. --output plain prints
    topic:partition:offset, as Kafka's own tool does.

    PARTITIONS are numbers and ranges: orders:0,2,5-8. The offset is empty where no record is as
    late as TIMESTAMP.
    """
    when = parse_moment(moment)
    client, metadata = connection.admin()
    there = {name: sorted(topic.partitions) for name, topic in metadata.topics.items()}
    wanted = partitions_there(selections, there, exclude_internal=exclude_internal)
    rows: list[dict[str, Any]] = []
    try:
        with Attempts() as attempts:
            for name, found in list_offsets(connection, client, wanted, when):
                with attempts.one():
                    result = connection.wait(f"cannot look up {name[0]}-{name[1]}", found)
                    rows.append(_row(name, result))
    finally:
        _show(rows, output)


def parse_moment(text: str) -> int:
    """`--time` as Kafka's number: negative for latest, earliest, max-timestamp."""
    if text in WORDS:
        return WORDS[text]
    try:
        number = int(text)
    except ValueError:
        pass
    else:
        if number >= MAX_TIMESTAMP:
            return number
        raise InputError(f"--time {text}: there is no such moment; -1, -2 and -3 have a meaning")
    try:
        date = datetime.datetime.fromisoformat(text)
    except ValueError:
        text = f"--time {text}: neither a word, a number of milliseconds nor an ISO date"
        raise InputError(text) from None
    return int(date.timestamp() * 1000)


def parse_partitions(text: str) -> set[int]:
    """`0,2,5-8` as numbers."""
    numbers: set[int] = set()
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            numbers |= set(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        raise InputError(f"partitions are numbers and ranges like 0,2,5-8, not {text}") from None
    return numbers


def partitions_there(
    selections: tuple[str, ...], there: Mapping[str, Sequence[int]], *, exclude_internal: bool
) -> list[tuple[str, int]]:
    """What is asked for, checked against what there is: the partitions of each topic."""
    if not selections:
        chosen = [name for name in there if not (exclude_internal and name.startswith("__"))]
        return sorted((name, partition) for name in chosen for partition in there[name])
    wanted = []
    for selection in selections:
        name, colon, numbers = selection.partition(":")
        if name not in there:
            raise CommandError(f"there is no topic {name}{similar(name, there)}")
        chosen_numbers = parse_partitions(numbers) if colon else set(there[name])
        if missing := chosen_numbers - set(there[name]):
            raise CommandError(f"topic {name} has no partition {min(missing)}")
        wanted += [(name, partition) for partition in sorted(chosen_numbers)]
    return wanted


def list_offsets(
    connection: Connection, client: AdminClient, wanted: list[tuple[str, int]], when: int
) -> list[tuple[tuple[str, int], Future[Any]]]:
    """Ask for all partitions at once; topic and partition of each with its answer to come."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    if not wanted:
        return []
    make_spec: Any = OffsetSpec  # Picks the subclass from the number; its types do not say so.
    with failures("cannot look up offsets"):
        asked = {TopicPartition(name, partition): make_spec(when) for name, partition in wanted}
        futures = client.list_offsets(asked, request_timeout=connection.timeout_s)
    return [((asked.topic, asked.partition), future) for asked, future in futures.items()]


def _row(name: tuple[str, int], found: Any) -> dict[str, Any]:
    return {
        "topic": name[0],
        "partition": name[1],
        "offset": found.offset if found.offset >= 0 else None,
        "timestamp": found.timestamp if found.timestamp >= 0 else None,
        "leader_epoch": found.leader_epoch,
    }


def _show(rows: list[dict[str, Any]], output: str) -> None:
    rows.sort(key=lambda row: (row["topic"], row["partition"]))
    if output == "json":
        print_json(rows)
    elif output == "plain":
        for row in rows:
            click.echo(f"{row['topic']}:{row['partition']}:{_plain(row, 'offset')}")
    elif rows:
        columns = ["topic", "partition", "offset", "timestamp"]
        print_table(columns, [[row[column] for column in columns] for row in rows])


def _plain(row: Mapping[str, Any], name: str) -> str:
    return "" if row[name] is None else str(row[name])
