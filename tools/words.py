"""Words that no page for users holds, with what to write instead; nor does one name tests.

Readers search for the words of the field, and those of another first language know them. Code is
not looked at. `tools.tidy` runs this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

INSTEAD: Final = {
    "anew": "again",
    "ceases": "stops",
    "reckon": "compute",
    "reckons": "computes",
    "shall": "must, or the present tense",
    "somebody": "the user or the program by its name",
    "thereby": "so",
    "whoever": "the client, broker or user",
    "whom": "which broker, which client",
}
FOR_DEVELOPERS: Final = (
    "docs/adr/",
    "docs/contributing/",
    "docs/reference/",
    "docs/ARCHITECTURE.md",
)
NAMES_TESTS: Final = ("docs/bounds.md", "docs/security.md", "README.md", "SECURITY.md")
"""The tables of attacks and of bounds name the test of each row."""

_WORD: Final = re.compile(rf"\b({'|'.join(INSTEAD)})\b", re.IGNORECASE)
_CODE: Final = re.compile(r"`[^`]*`|\(#[^)]*\)")
_TEST: Final = re.compile(r"\btests/[a-z_]+|\btest_[a-z_]+\.py")


def findings(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """Line and message of each word that a page for users should not have."""
    name = str(path)
    if not _is_for_users(name):
        return
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        fenced ^= line.lstrip().startswith("```")
        if fenced:
            continue
        for found in _WORD.finditer(_CODE.sub("", line)):
            yield number, f"{found[0]!r}: write {INSTEAD[found[0].lower()]}"
        if name not in NAMES_TESTS and (test := _TEST.search(line)):
            yield number, f"{test[0]}: a page for users names no tests"


def _is_for_users(name: str) -> bool:
    in_docs = name.startswith("docs/") and not name.startswith(FOR_DEVELOPERS)
    return in_docs or name in ("README.md", "SECURITY.md")
