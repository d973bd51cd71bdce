"""The fenced blocks and the code spans of the documents, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_FENCE: Final = re.compile(r"^ *```(?P<language>[\w-]*)")
_SPAN: Final = re.compile(r"`([^`]+)`")
_ASSIGNMENT: Final = re.compile(r"[A-Z_]+=.*")
_PLACEHOLDER: Final = re.compile(r"<(\w+)>")
# Generated from the parsers themselves, written for another version, or not for users.
_NOT_PLAYED: Final = ("docs/reference/cli.md", "docs/adr/")
_PATTERNS: Final = ("*.md", "*/README.md", "libs/*/README.md", "charts/*/README.md", "docs/**/*.md")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A fenced block or a code span: its page, line and text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        """For a person, and as the id of a test."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """The documents in Markdown."""
    found = (path for pattern in _PATTERNS for path in ROOT.glob(pattern))
    names = sorted({path.relative_to(ROOT).as_posix() for path in found})
    return [each for each in names if not each.startswith(_NOT_PLAYED)]


def snippets(text: str, page: str) -> tuple[list[Snippet], list[Snippet]]:
    """The fenced blocks of a page, and its code spans."""
    blocks: list[Snippet] = []
    spans: list[Snippet] = []
    language: str | None = None
    began, lines = 0, [""]
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None and language is None:
            spans += [Snippet(page, number, "", each) for each in _SPAN.findall(line)]
        elif fence is None:
            lines.append(line)
        elif language is None:
            language, began, lines = fence["language"], number + 1, []
        else:
            blocks.append(Snippet(page, began, language, "\n".join(lines) + "\n"))
            language = None
    return blocks, spans


def commands(text: str, programs: frozenset[str]) -> Iterator[list[str]]:
    """The commands of these programs in a shell text, each as its words.

    They are at the begin of a line or behind `$`, `|`, `;`, `&&`, or `--` of `kubectl exec`.
    """
    for line in _PLACEHOLDER.sub(r"\1", text.replace("\\\n", " ")).splitlines():
        if not any(program in line for program in programs):
            continue
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:  # A quote of several lines.
            continue
        command: list[str] = []
        for word in [*words, ";"]:
            if set(word) <= set("|&;<>()"):
                if command and command[0] in programs:
                    yield command
                command = []
            elif word == "--" and "kubectl" in command:
                command = []
            elif command or not (word == "$" or _ASSIGNMENT.fullmatch(word)):
                command.append(word)
