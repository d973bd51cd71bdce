"""A cluster as tables for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from barnabas_operator.api.conditions import READY, Condition
from barnabas_operator.local.view import View

# A pipe has no width; a line that a program reads must not be folded.
PIPE_WIDTH: Final = 10_000
NOTHING: Final = "-"


def show(view: View) -> None:
    """Print the tables of one cluster."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(width=width, highlight=False, soft_wrap=False)
    with console.capture() as printed:  # Rich would end the program at a closed pipe.
        _print(view, console)
    click.echo(printed.get(), nl=False)


def _print(view: View, console: Console) -> None:
    listeners = [each.bootstrap_servers for each in view.status.listeners]
    row = (view.name, *_ready(view), _lines(listeners), str(view.directory))
    console.print(_table(("cluster", "ready", "reason", "listeners", "directory"), [row]))
    console.print(
        _table(
            ("broker", "pid", "memory", "admin", "log"),
            [
                (
                    str(each.id),
                    _number(each.pid),
                    _megabytes(each.memory_bytes),
                    each.admin or NOTHING,
                    str(each.log),
                )
                for each in view.brokers
            ],
        )
    )
    if view.zookeeper:
        console.print(
            _table(
                ("zookeeper", "pid", "memory", "address", "mode", "log"),
                [
                    (
                        str(each.id),
                        _number(each.pid),
                        _megabytes(each.memory_bytes),
                        each.address,
                        each.mode or NOTHING,
                        str(each.log),
                    )
                    for each in view.zookeeper
                ],
            )
        )
    if view.topics:
        console.print(_topics(view))
    if view.users:
        console.print(_users(view))
    if view.pipelines:
        console.print(_pipelines(view))
    for condition in view.status.conditions:
        if condition.type != READY or condition.status != "True":
            console.print(Text(f"{condition.type}: {condition.message}"))


def _topics(view: View) -> Table:
    columns = ("topic", "partitions", "replicas", "ready", "reason", "message")
    rows = (
        (name, str(each.partitions), str(each.replicas), *_condition_cells(each.conditions))
        for name, each in view.topics.items()
    )
    return _table(columns, rows)


def _users(view: View) -> Table:
    columns = ("user", "ready", "reason", "message", "try it")
    rows = (
        (name, *_condition_cells(each.status.conditions), each.command)
        for name, each in view.users.items()
    )
    return _table(columns, rows)


def _pipelines(view: View) -> Table:
    columns = ("pipeline", "pid", "memory", "rows", "lag", "ready", "reason", "message")
    rows = (
        (
            name,
            _number(each.pid),
            _megabytes(each.memory_bytes),
            str(each.status.rows),
            str(each.status.lag),
            *_condition_cells(each.status.conditions),
        )
        for name, each in view.pipelines.items()
    )
    return _table(columns, rows)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _ready(view: View) -> tuple[str, str]:
    """Whether all is Ready, in the form for programs, and why: the first that is not."""
    status, reason, _ = _condition_cells(view.status.conditions)
    if status != "True" or view.unready is None:
        return status, reason
    return "False", f"{view.unready} is not Ready"


def _condition_cells(conditions: Iterable[Condition]) -> tuple[str, str, str]:
    """Status, reason and message of Ready."""
    found = next((each for each in conditions if each.type == READY), None)
    return (found.status, found.reason, found.message) if found else ("Unknown", NOTHING, "")


def _lines(texts: Sequence[str]) -> str:
    return ", ".join(texts) or NOTHING


def _number(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _megabytes(size: int | None) -> str:
    return NOTHING if size is None else f"{size / 1e6:.0f} MB"
