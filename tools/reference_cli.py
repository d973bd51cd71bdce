"""The reference of the command line: every command of `barnabas` with its arguments and options.

Made from the parsers themselves. The names of Kafka's tools come from the project's scripts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from barnabas_broker.cli.main import main

PROJECT: Final = Path(__file__).resolve().parent.parent / "pyproject.toml"
# The reference does not depend on how wide the terminal is that makes it.
WIDE: Final = 10_000


def page(generated: str) -> str:
    """All commands in their order, those with subcommands first as a list."""
    lines = [
        "# Command line",
        "",
        generated,
        "",
        str(main.help),
        "",
        "Every command takes `-h`. The examples are on the page [Command line](../tasks/tools.md).",
        "",
        "Exit codes: 0 done, 1 the operation failed, 2 wrong usage or a wrong setting.",
    ]
    context = _context(main, "barnabas", None)
    for name, command in _children(main, context):
        lines += _section(command, _context(command, name, context), level=2)
    lines += ["", "## Kafka's tool names", "", *_kafka_tools()]
    return "\n".join(lines) + "\n"


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    settings = {**command.context_settings, "terminal_width": WIDE}
    return click.Context(command, info_name=name, parent=parent, **settings)


def _children(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            raise ValueError(f"{context.command_path} lists {name}, and does not know it")
        if not command.hidden:
            yield name, command


def _section(command: click.Command, context: click.Context, *, level: int) -> list[str]:
    lines = ["", f"{'#' * level} {context.command_path}", "", *_prose(command.help or "")]
    if not isinstance(command, click.Group):
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        lines += ["", "```", usage, "```"]
    lines += _options(command, context)
    if isinstance(command, click.Group):
        for name, child in _children(command, context):
            lines += _section(child, _context(child, name, context), level=level + 1)
    return lines


def _prose(text: str) -> list[str]:
    """A docstring as Markdown: paragraphs that click is told not to wrap are shown as they are."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if lines:
            lines.append("")
        if paragraph.lstrip().startswith("\b"):
            body = paragraph.replace("\b", "").strip("\n").splitlines()
            lines += ["```", *(line.rstrip() for line in body), "```"]
        else:
            lines.append(_escaped(" ".join(paragraph.split())))
    return lines


def _options(command: click.Command, context: click.Context) -> list[str]:
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and "--help" not in parameter.opts:
            rows.append(_row((f"`{record[0]}`", _escaped(" ".join(record[1].split())))))
    return ["", "| Option | Meaning |", "|---|---|", *rows] if rows else []


def _kafka_tools() -> list[str]:
    scripts: dict[str, Any] = tomllib.loads(PROJECT.read_text())["project"]["scripts"]
    absent = "barnabas_broker.cli.kafka.absent"
    names = [name for name in scripts if name != "barnabas" and not name.endswith(".sh")]
    return [
        "These take the options of Apache Kafka's tools of the same names, also with `.sh`:",
        "",
        *(f"* `{name}`" for name in sorted(names) if not scripts[name].startswith(absent)),
        "",
        "These say why Barnabas does not have them, and exit with 1:",
        "",
        *(f"* `{name}`" for name in sorted(names) if scripts[name].startswith(absent)),
    ]


def _escaped(text: str) -> str:
    """Text that Markdown would take for tags; what stands in backticks is left alone."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else part.replace("<", "&lt;").replace("*", "\\*")
        for part in parts
    )


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
