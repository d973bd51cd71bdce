"""Tables of plans and moves: replicas removed and added, and the bytes to copy."""

from __future__ import annotations

from typing import Any

import click

from barnabas_broker.cli.output import human, print_json, print_table
from barnabas_broker.cli.reassign.cluster import Sizes
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import Layout


def bytes_to_copy(before: Layout, wanted: Layout, known: Sizes) -> dict[TopicPartition, int]:
    """For each partition, its biggest log for each replica that is new."""
    found = {}
    for tp, replicas in wanted.items():
        size = max((known.get((broker, tp), 0) for broker in before[tp]), default=0)
        found[tp] = size * len(set(replicas) - set(before[tp]))
    return found


def show_plan(before: Layout, wanted: Layout, known: Sizes) -> None:
    """A row for each partition, and what it comes to on standard error."""
    copied = bytes_to_copy(before, wanted, known)
    rows = [
        [tp.topic, tp.partition, before[tp], replicas, human(copied[tp])]
        for tp, replicas in sorted(wanted.items())
    ]
    print_table(["topic", "partition", "replicas", "wanted", "to copy"], rows)
    coming = sum(len(set(replicas) - set(before[tp])) for tp, replicas in wanted.items())
    leading = sum(replicas[0] != before[tp][0] for tp, replicas in wanted.items())
    click.echo(
        f"{len(rows)} partitions change: {coming} replicas to copy, "
        f"{human(sum(copied.values()))}; {leading} preferred leaders are others.",
        err=True,
    )


def show_rows(rows: list[dict[str, Any]], output: str, nothing: str) -> None:
    """A table, or JSON; `nothing` where there are no rows."""
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        click.echo(nothing)
