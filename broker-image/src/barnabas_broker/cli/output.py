"""What commands print: tables for people, JSON or YAML for programs.

A command knows two kinds of output, its own and a document. `--output yaml` is `json` to it: in
which of the two formats the document is written, `print_json` finds in the context. A command that
changes something reports with `done`, and its document is the list of what it did.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.errors import FAILED, CommandError
from barnabas_broker.printable import printable

if TYPE_CHECKING:
    from rich.console import JustifyMethod

Row = Mapping[str, Any]

# A pipe has no width; a line that a program reads must not be folded.
PIPE_WIDTH = 10_000
GAP = 2
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


YAML = "barnabas_broker.cli.output.yaml"
RESULTS = "barnabas_broker.cli.output.results"


def output_option(
    command: Callable[..., Any] | None = None,
    *,
    plain: Sequence[str] = ("table",),
    many: bool = False,
) -> Callable[..., Any]:
    """Add `--output table|json|yaml`; the command is called with `output`.

    `plain` are the command's own kinds of output, the default first. For yaml, it is called with
    json, and `print_json` prints YAML. With `many` it prints objects one by one, each by
    `record_line`.
    """
    if command is None:
        return functools.partial(output_option, plain=plain, many=many)
    programs = "JSON, an object per line, or YAML documents" if many else "JSON or YAML"
    return click.option(
        "-o",
        "--output",
        type=click.Choice([*plain, "json", "yaml"]),
        default=plain[0],
        show_default=True,
        callback=_format_of_documents,
        help=f"{plain[0]} for people, {programs} for programs.",
    )(command)


def _format_of_documents(ctx: click.Context, _: click.Parameter, value: str) -> str:
    ctx.meta[YAML] = value == "yaml"
    return "json" if value == "yaml" else value


def results_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--output text|json|yaml` to a command that reports with `done`.

    Its document is printed when it ends, with what was done also where the rest failed; not where
    nothing was tried.
    """

    @functools.wraps(command)
    def reporting(*arguments: Any, output: str, **options: Any) -> None:
        if output != "json":
            command(*arguments, **options)
            return
        results = click.get_current_context().meta[RESULTS] = []
        try:
            command(*arguments, **options)
        except CommandError as error:
            if error.exit_code == FAILED:
                print_json(results)
            raise
        print_json(results)

    return output_option(reporting, plain=("text",))


def done(text: str, *results: Row, err: bool = False) -> None:
    """Report what is done: a line for people, on standard error with `err`; or objects.

    Outside of a command with `results_option` it is the line.
    """
    context = click.get_current_context(silent=True)
    reported = None if context is None else context.meta.get(RESULTS)
    if reported is None:
        click.echo(text, err=err)
    else:
        reported.extend(results)


def print_json(value: Any) -> None:
    """One JSON document; one YAML document with `--output yaml`."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo(_as_yaml(text) if _yaml_is_wanted() else text)


def record_line(text: str) -> str:
    """One of many JSON objects, as a line; with `--output yaml` as a document of a stream."""
    return f"---\n{_as_yaml(text)}" if _yaml_is_wanted() else text


def _yaml_is_wanted() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(YAML))


def _as_yaml(text: str) -> str:
    import yaml

    # What JSON makes of tuples and of numbers with names, YAML need not know.
    document = json.loads(text)
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True)).removesuffix("\n")


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
    with console.capture() as printed:  # Rich would end the program at a closed pipe.
        console.print(table)
    click.echo(printed.get(), nl=False)


def cell_text(value: Any) -> str:
    """One cell as text, in one line.

    Names of groups and clients are the clients' to invent: a code for the terminal is escaped.
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return printable(",".join(map(str, value)))
    return printable(str(value))


def counted(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def human(size: int) -> str:
    """Bytes as people say them: three figures and a unit."""
    value, unit = float(size), UNITS[0]
    for unit in UNITS:
        if value < 1000 or unit == UNITS[-1]:
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.3g} {unit}"
