"""How a tool says in the words of Apache's tools that brokers refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from barnabas_broker.cli.errors import FAILED, CommandError


@contextmanager
def reported_as(beginning: str) -> Iterator[None]:
    """Print a failure on standard output after `beginning`, where scripts look for it."""
    try:
        yield
    except CommandError as error:
        click.echo(beginning + error.message)
        raise SystemExit(FAILED) from None
