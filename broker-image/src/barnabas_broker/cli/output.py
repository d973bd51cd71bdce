"""What commands print: tables for people, JSON or YAML for programs.

A command knows two kinds of output, its own and a document. `--output yaml` is `json` to it: in
which of the two formats the document is written, `print_json` finds in the context.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import JustifyMethod

Row = Mapping[str, Any]

# A pipe has no width; a line that a program reads must not be folded.
PIPE_WIDTH = 10_000
GAP = 2


YAML = "barnabas_broker.cli.output.yaml"


def output_option(
    command: Callable[..., Any] | None = None, *, plain: Sequence[str] = ("table",)
) -> Callable[..., Any]:
    """Add `--output table|json|yaml`; the command is called with `output`.

    `plain` are the command's own kinds of output, the default first. For yaml, it is called with
    json, and `print_json` prints YAML.
    """
    if command is None:
        return functools.partial(output_option, plain=plain)
    return click.option(
        "--output",
        type=click.Choice([*plain, "json", "yaml"]),
        default=plain[0],
        show_default=True,
        callback=_format_of_documents,
        help=f"{plain[0]} for people, JSON or YAML for programs.",
    )(command)


def _format_of_documents(ctx: click.Context, _: click.Parameter, value: str) -> str:
    ctx.meta[YAML] = value == "yaml"
    return "json" if value == "yaml" else value


def print_json(value: Any) -> None:
    """One JSON document; one YAML document with `--output yaml`."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    context = click.get_current_context(silent=True)
    if context is None or not context.meta.get(YAML):
        click.echo(text)
        return
    import yaml

    # What JSON makes of tuples and of numbers with names, YAML need not know.
    document = json.loads(text)
    click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Rows under headings, as wide as the terminal; numbers to the right, lists with commas."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else PIPE_WIDTH, highlight=False, soft_wrap=False)
    numeric = {
        index: max(len(column), *(len(cell_text(row[index])) for row in rows)) + GAP
        for index, column in enumerate(columns)
        if rows and all(isinstance(row[index], int | None) for row in rows)
    }
    # Where text has room beside them numbers stay whole, and text is folded.
    whole = 3 * sum(numeric.values()) <= 2 * console.width
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        justify: JustifyMethod = "right" if index in numeric else "left"
        no_wrap = whole and index in numeric
        table.add_column(column, justify=justify, overflow="fold", no_wrap=no_wrap)
    for row in rows:
        table.add_row(*(Text(cell_text(cell)) for cell in row))
    with console.capture() as printed:  # Rich would end the program where nobody reads it.
        console.print(table)
    click.echo(printed.get(), nl=False)


def cell_text(value: Any) -> str:
    """One cell as text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
