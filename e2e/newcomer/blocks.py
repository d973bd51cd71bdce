"""The shell blocks of a document, as a newcomer copies them.

Only blocks that say `sh` are commands to play; a block without a language is for reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FENCE: Final = re.compile(r"^```(?P<language>\S*)\s*$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where it begins, and its text."""

    document: str
    line: int
    text: str


def blocks(document: Path, name: str) -> list[Block]:
    """The shell blocks of a Markdown document, in its order."""
    found: list[Block] = []
    lines: list[str] = []
    language: str | None = None
    began = 0
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif language is None:
            language, began = fence["language"], number + 1
            lines = []
        else:
            if language == "sh":
                found.append(Block(name, began, "\n".join(lines) + "\n"))
            language = None
    return found
