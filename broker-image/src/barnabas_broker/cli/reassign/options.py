"""Options that several of the commands have, and what they choose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError, InputError, similar
from barnabas_broker.cli.json_files import write_json
from barnabas_broker.cli.output import output_option, print_json
from barnabas_broker.cli.reassign.cluster import CurrentAssignment, sizes
from barnabas_broker.cli.reassign.tables import show_plan
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.reassignment.files import Layout, write_reassignment
from barnabas_kafka.reassignment.planning import PlanError, Racks

FILE = click.Path(path_type=Path)


def result_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--to`, `--output` and `--no-racks`, which all that propose layouts have."""
    command = click.option("--no-racks", is_flag=True, help="As if the brokers stood in no racks.")(
        command
    )
    command = output_option(command)
    return click.option(
        "--to",
        "target",
        type=FILE,
        help="Write it to this file, for `execute` or kafka-reassign-partitions.",
    )(command)


def racks_of(current: CurrentAssignment, no_racks: bool) -> Racks:
    """The racks that count."""
    return dict.fromkeys(current.racks) if no_racks else current.racks


def of_topics(layout: Layout, topics: Iterable[str]) -> Layout:
    """The partitions of these topics, or all; CommandError for a topic that is not there."""
    names = set(topics)
    there = {tp.topic for tp in layout}
    if missing := sorted(names - there):
        raise CommandError(f"there is no topic {missing[0]}{similar(missing[0], there)}")
    return {tp: replicas for tp, replicas in layout.items() if not names or tp.topic in names}


def check_brokers(current: CurrentAssignment, brokers: Iterable[int]) -> None:
    """CommandError for a broker that does not live."""
    if missing := sorted(set(brokers) - current.racks.keys()):
        raise CommandError(f"there is no broker {missing[0]}, or it does not run")


def check_at_rest(current: CurrentAssignment, layout: Layout) -> None:
    """CommandError where one of the partitions is being moved: its outcome is unknown."""
    if moving := sorted(current.moving.keys() & layout.keys()):
        raise CommandError(
            f"{moving[0]} is being moved to {list(current.moving[moving[0]].target)}: "
            "wait for it, or cancel it"
        )


def parse_brokers(text: str) -> list[int]:
    """Broker ids separated by commas; InputError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise InputError(f"brokers are numbers separated by commas, not {text!r}")
    ids = [int(part) for part in parts]
    if len(set(ids)) < len(ids):
        raise InputError(f"a broker is named twice: {text}")
    return ids


@contextmanager
def refusals() -> Iterator[None]:
    """What has no layout is one line."""
    try:
        yield
    except PlanError as error:
        raise CommandError(str(error)) from None
    except KafkaError as error:
        raise CommandError(f"{error.message} ({error.code.name})") from None


def present(
    connection: Connection,
    current: CurrentAssignment,
    plan: Layout,
    target: Path | None,
    output: str,
) -> None:
    """Show a proposal, and write it where it was asked for."""
    text = write_reassignment(plan)
    if plan and target is not None:
        write_json(target, text)
    if output == "json":
        print_json(json.loads(text))
    elif plan:
        show_plan(current.layout, plan, sizes(connection, current.racks))
    else:
        click.echo("Nothing has to move.")
    if plan and target is not None:
        click.echo(f"Written to {target}.", err=True)
    elif target is not None:
        click.echo(f"{target} is not written: there is nothing to do.", err=True)
