"""The log messages of broker, operator and libraries, as the reference page lists them.

Level, text and logger are read from the calls; what a message means and what to do about it stands
in `log_messages.toml`, by its text. A message without an entry, and an entry without its message,
are errors: whoever adds a line says what it means.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = (
    "broker-image/src/barnabas_broker",
    "libs/kafka/src/barnabas_kafka",
    "libs/zookeeper/src/barnabas_zookeeper",
    "operator/src/barnabas_operator",
)
ENTRIES: Final = Path(__file__).with_suffix(".toml")
LOGGERS: Final = {"log", "logger", "_log", "_logger"}
# `exception` logs an error with its traceback; `log` takes the level as an argument.
LEVELS: Final = {
    "info": "INFO",
    "warning": "WARNING",
    "error": "ERROR",
    "exception": "ERROR",
    "critical": "CRITICAL",
    "log": "INFO or higher",
}
ORDER: Final = ("CRITICAL", "ERROR", "WARNING", "INFO or higher", "INFO")
PLACEHOLDER: Final = re.compile(r"%[-.\d]*[a-z]")


class EntriesError(ValueError):
    """Messages without an entry, or entries without a message."""


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """A message that is logged at INFO or above."""

    text: str
    level: str
    logger: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What a message means, and what to do about it; nothing for many at INFO."""

    meaning: str
    action: str


def messages() -> list[Message]:
    """All of them, sorted; those that are nothing but a placeholder are texts of other messages."""
    found: set[Message] = set()
    for source in SOURCES:
        base = (ROOT / source).parent
        for path in (ROOT / source).rglob("*.py"):
            logger = ".".join(path.relative_to(base).with_suffix("").parts)
            found |= {Message(text, level, logger) for level, text in _logged(path)}
    return sorted(each for each in found if re.search("[a-z]", PLACEHOLDER.sub("", each.text)))


def entries(found: Iterable[Message]) -> Mapping[str, Entry]:
    """What the messages of the code mean; raises EntriesError where those are others."""
    read = {text: Entry(*reported) for text, reported in tomllib.loads(ENTRIES.read_text()).items()}
    known = {each.text for each in found}
    problems = [f"no entry: {text}" for text in sorted(known - read.keys())]
    problems += [f"no such message: {text}" for text in sorted(read.keys() - known)]
    if problems:
        raise EntriesError(f"{ENTRIES.name}: " + "; ".join(problems))
    return read


def page(generated: str) -> str:
    """The reference page."""
    found = messages()
    reported = entries(found)
    lines = [
        "# Log messages",
        "",
        generated,
        "",
        "Every message at INFO and above, by level; `…` is a value. ERROR needs a person, WARNING",
        "may, INFO is a change of state. A broker writes `[time] LEVEL message (logger)`, or JSON",
        "with `barnabas.log.format=json`.",
        "",
    ]
    for level in ORDER:
        those = [each for each in found if each.level == level]
        lines += [f"## {level}", "", "| Message | Meaning | Action | Logger |", "|---|---|---|---|"]
        for text in sorted({each.text for each in those}):
            loggers = ", ".join(f"`{each.logger}`" for each in those if each.text == text)
            entry = reported[text]
            cells = (f"`{shown(text)}`", entry.meaning, entry.action, loggers)
            lines.append("| " + " | ".join(cells).replace("  |", " |") + " |")
        lines.append("")
    return "\n".join(lines)


def shown(text: str) -> str:
    """A message as a reader meets it, values left out."""
    return PLACEHOLDER.sub("…", " ".join(text.split())).replace("|", "\\|")


def _logged(path: Path) -> Iterator[tuple[str, str]]:
    source = path.read_text(encoding="utf-8")
    if not any(f"{name}." in source for name in LOGGERS):
        return
    tree = ast.parse(source)
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and (level := _level(node.func)):
                position = 1 if level == LEVELS["log"] else 0
                for text in _texts(node.args[position], scope):
                    yield level, text


def _level(function: ast.expr) -> str | None:
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return None
    return LEVELS.get(function.attr) if function.value.id in LOGGERS else None


def _texts(argument: ast.expr, scope: ast.AST) -> Iterator[str]:
    """The constants that a message may be: itself, either branch, or what a name was given."""
    match argument:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body, scope)
            yield from _texts(orelse, scope)
        case ast.Name(id=name):
            for node in ast.walk(scope):
                if isinstance(node, ast.Assign) and any(
                    isinstance(target, ast.Name) and target.id == name for target in node.targets
                ):
                    yield from _texts(node.value, scope)
