"""Pages of docs/quickstarts as a reader follows them: files saved, commands run, output compared.

A block with a title is a file of that name. The `sh` blocks run in order, in one shell. A `text`
block is what the `sh` block before it prints. One thing is changed: the broker's address, as a test
has a port of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.waiting import RUN, seconds

PAGES: Final = Path(__file__).resolve().parents[2] / "docs" / "quickstarts"
PRINTED: Final = "localhost:9092"
_FENCE: Final = re.compile(r'^```(?P<language>[a-z]*)(?: title="(?P<title>[^"]+)")?\s*$')
_MARK: Final = "===== the output of block"
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Page:
    """What a reader takes from a page: files, commands, and the output of some commands."""

    files: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    outputs: dict[int, str] = field(default_factory=dict)
    """By the number of the commands that print it."""


def parse(text: str) -> Page:
    """The fenced blocks of a page."""
    page = Page()
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        fence = _FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif opened is None:
            opened, lines = fence, []
        else:
            _add(page, opened, "".join(lines))
            opened = None
    return page


def _add(page: Page, fence: re.Match[str], content: str) -> None:
    if fence["title"]:
        page.files[fence["title"]] = content
    elif fence["language"] == "sh":
        page.commands.append(content)
    elif fence["language"] == "text":
        page.outputs[len(page.commands) - 1] = content


def script(commands: list[str]) -> str:
    """One shell program of all commands, each announced; it ends at the first that fails."""
    parts = ["set -euo pipefail\n"]
    for number, command in enumerate(commands):
        parts += [f"echo '{_MARK} {number}'\n", command]
    return "".join(parts)


def follow(name: str, directory: Path, *, bootstrap: str, variables: Mapping[str, str]) -> None:
    """Do what a page says in an empty directory; raises AssertionError where it is not so."""
    page = parse((PAGES / name).read_text(encoding="utf-8").replace(PRINTED, bootstrap))
    assert page.outputs, f"{name} shows no output"
    for title, content in page.files.items():
        (directory / title).write_text(content, encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", script(page.commands)],
        cwd=directory,
        env={**os.environ, "BARNABAS_BOOTSTRAP": bootstrap, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    plain = _COLOUR.sub("", done.stdout)  # Maven resets colours even where it has none.
    printed = re.split(rf"^{_MARK} \d+\n", plain, flags=re.MULTILINE)[1:]
    for number, output in page.outputs.items():
        assert printed[number] == output, done.stderr
