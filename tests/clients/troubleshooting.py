"""The tables of docs/operations/troubleshooting.md, as tests read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "operations" / "troubleshooting.md"
ANYTHING: Final = "…"


@dataclass(slots=True)
class Row:
    """One row: its id, and the texts in code type of its first column that nobody met yet."""

    id: str
    unseen: set[str] = field(default_factory=set)

    def seen(self, text: object) -> None:
        """Tick off what the row quotes and `text` contains; it must be something."""
        words = " ".join(str(text).split())
        found = {quote for quote in self.unseen if pattern(quote).search(words)}
        assert found, f"none of {sorted(self.unseen)} in: {words}"
        self.unseen -= found


def pattern(quote: str) -> re.Pattern[str]:
    """A quoted message, in which an ellipsis stands for anything."""
    return re.compile(".*?".join(re.escape(part) for part in quote.split(ANYTHING)))


def rows() -> Iterator[Row]:
    """The rows of all tables of the page: `| <a id="…"></a> symptom | cause | remedy |`."""
    for line in PAGE.read_text().splitlines():
        if found := re.match(r'\| <a id="([a-z-]+)"></a>', line):
            symptom, cause, remedy = line.strip("|").split(" | ")
            assert cause.strip(), line
            assert remedy.strip(), line
            yield Row(found[1], set(re.findall("`([^`]+)`", symptom)))
