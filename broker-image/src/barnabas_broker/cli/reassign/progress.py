"""Waiting for moves: a bar on a terminal, lines elsewhere, until none is under way."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import click

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.reassign.cluster import CurrentAssignment, Sizes, current_assignment, sizes
from barnabas_kafka.reassignment.files import Layout

POLL_S = 1.0


class Bar(Protocol):
    """Where progress is shown: bytes of all bytes, and in words."""

    def __call__(self, copied: int, total: int, words: str) -> None: ...


def wait(connection: Connection, before: CurrentAssignment, wanted: Layout) -> None:
    """Until none of the partitions moves any more."""
    pause = threading.Event()
    with _bar() as show:
        while True:
            moving = current_assignment(connection).moving.keys() & wanted.keys()
            copied, total = _bytes(sizes(connection, before.racks), before.origins, wanted)
            done = len(wanted) - len(moving)
            show(copied if moving else total, total, f"{done} of {len(wanted)} partitions")
            if not moving:
                return
            pause.wait(POLL_S)


def _bytes(known: Sizes, origins: Layout, wanted: Layout) -> tuple[int, int]:
    """How many bytes new replicas have, and how many they will have."""
    copied = total = 0
    for tp, replicas in wanted.items():
        coming = set(replicas) - set(origins[tp])
        size = max((known.get((each, tp), 0) for each in {*origins[tp], *coming}), default=0)
        total += size * len(coming)
        copied += sum(known.get((each, tp), 0) for each in coming)
    return copied, total


@contextmanager
def _bar() -> Iterator[Bar]:
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (BarColumn(), DownloadColumn(binary_units=True), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=None)

        def show(copied: int, total: int, words: str) -> None:
            # A bar of nothing stays empty; what has no bytes to copy is one whole.
            progress.update(
                task, completed=copied if total else 1, total=total or 1, description=words
            )

        yield show


def _lines() -> Bar:
    shown = ""

    def show(copied: int, total: int, words: str) -> None:
        nonlocal shown
        line = f"{100 * copied // total if total else 100} % copied, {words} done"
        if line != shown:
            shown = line
            click.echo(line, err=True)

    return show
