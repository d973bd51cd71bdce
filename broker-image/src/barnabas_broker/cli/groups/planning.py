"""`barnabas groups plan`: the assignment of an assignor, before a consumer is restarted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.groups.assignors import ASSIGNORS, Subscriber
from barnabas_broker.cli.groups.assignors import plan as planned
from barnabas_broker.cli.groups.cluster import Groups
from barnabas_broker.cli.groups.lag import by_topic
from barnabas_broker.cli.output import output_option, print_json, print_table


@click.command()
@click.argument("name", required=False, metavar="[GROUP]")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='{"partitions": {"orders": 6}, "members": {"C1": ["orders"]}} instead of a group.',
)
@click.option("--assignor", type=click.Choice(list(ASSIGNORS)), required=True)
@click.option("--without", multiple=True, metavar="MEMBER", help="As if that one had left.")
@output_option
@connection_options
def plan(
    name: str | None,
    file: Path | None,
    assignor: str,
    without: tuple[str, ...],
    output: str,
    connection: Connection,
) -> None:
    """Show who would read what with an assignor.

    MEMBER is a member's id, or its client id.
    """
    if (name is None) == (file is None):
        raise click.UsageError("name a group, or give --file")
    if file is not None:
        members, counts = read(file)
    else:
        cluster = Groups.of(connection)
        members = list(cluster.subscribers(str(name)))
        counts = {topic: len(numbers) for topic, numbers in cluster.topics.items()}
    there = {each.client_id for each in members} | {each.id for each in members}
    if unknown := set(without) - there:
        raise CommandError(f"there is no member {min(unknown)}")
    members = [each for each in members if not {each.id, each.client_id} & set(without)]
    found = planned(assignor, members, counts) if members else {}
    rows = [_row(each, found[each.id]) for each in members]
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


def _row(member: Subscriber, gets: frozenset[tuple[str, int]]) -> dict[str, Any]:
    return {
        "member": member.id,
        "gets": by_topic(gets),
        "partitions": len(gets),
        "new": by_topic(gets - member.has),
        "lost": by_topic(member.has - gets),
    }


def read(file: Path) -> tuple[list[Subscriber], Mapping[str, int]]:
    """Members and partition counts of a file; InputError where it is of another form."""
    try:
        document = json.loads(file.read_text())
        members = [
            Subscriber(str(name), frozenset(map(str, topics)))
            for name, topics in document["members"].items()
        ]
        counts = {str(topic): int(count) for topic, count in document["partitions"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file}: not partitions and members ({error!r})") from None
    return members, counts
