"""`barnabas reassign plan`: layouts that need the fewest moves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.reassign.cluster import current_assignment
from barnabas_broker.cli.reassign.options import (
    check_at_rest,
    check_brokers,
    of_topics,
    present,
    racks_of,
    refusals,
    result_options,
)
from barnabas_kafka.reassignment.files import Layout
from barnabas_kafka.reassignment.planning import (
    Plan,
    Racks,
    balanced,
    drained,
    extended,
    refactored,
)

TOPICS = click.option(
    "--topic", "topics", multiple=True, help="Look at this one alone; may be repeated."
)
SHARE_RACKS = click.option(
    "--share-racks", is_flag=True, help="Even if replicas come to share a rack that way."
)


@click.group()
def plan() -> None:
    """Plan moves: the fewest that balance brokers, drain or add one, or change a factor.

    Nothing is moved: a plan is a file for `execute`.
    """


@plan.command()
@TOPICS
@result_options
@connection_options
def balance(topics: tuple[str, ...], **options: Any) -> None:
    """Spread replicas and preferred leaders evenly, and partitions over racks."""
    _plan(topics, balanced, **options)


@plan.command()
@click.argument("brokers", nargs=-1, required=True, type=int, metavar="BROKER...")
@TOPICS
@SHARE_RACKS
@result_options
@connection_options
def drain(
    brokers: tuple[int, ...], topics: tuple[str, ...], share_racks: bool, **options: Any
) -> None:
    """Move what lies on brokers to the others, and nothing else.

    The brokers need not run.
    """
    _plan(topics, lambda it, racks: drained(it, racks, brokers, share_racks=share_racks), **options)


@plan.command()
@click.argument("brokers", nargs=-1, required=True, type=int, metavar="BROKER...")
@TOPICS
@result_options
@connection_options
def add(brokers: tuple[int, ...], topics: tuple[str, ...], **options: Any) -> None:
    """Give new brokers their share; nothing moves to any other."""
    _plan(topics, lambda it, racks: extended(it, racks, brokers), wanted=brokers, **options)


@plan.command()
@click.argument("number", type=click.IntRange(min=1), metavar="REPLICAS")
@click.option("--topic", "topics", multiple=True, required=True, help="Which; may be repeated.")
@SHARE_RACKS
@result_options
@connection_options
def factor(number: int, topics: tuple[str, ...], share_racks: bool, **options: Any) -> None:
    """Give every partition of topics so many replicas."""
    _plan(
        topics, lambda it, racks: refactored(it, racks, number, share_racks=share_racks), **options
    )


def _plan(
    topics: tuple[str, ...],
    make: Callable[[Layout, Racks], Plan],
    *,
    target: Path | None,
    output: str,
    no_racks: bool,
    connection: Connection,
    wanted: tuple[int, ...] = (),
) -> None:
    there = current_assignment(connection)
    check_brokers(there, wanted)
    layout = of_topics(there.layout, topics)
    check_at_rest(there, layout)
    with refusals():
        made = make(layout, racks_of(there, no_racks))
    present(connection, there, made, target, output)
