"""Documents for contributors name tests that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.tidy import ROOT

PAGES = sorted((ROOT / "docs/contributing").glob("*.md"))
NAMED = re.compile(r"`([\w/]*\.py)?::(test_\w+)`")


def named(text: str) -> Iterator[tuple[str, str]]:
    """Each file and test that a table names; `::test` is in the file before it."""
    file = ""
    for found, test in NAMED.findall(text):
        file = found or file
        yield file, test


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_tests_exist(page: Path) -> None:
    """With their whole path, or the name of a file that is there once."""
    missing = []
    for file, test in named(page.read_text("utf-8")):
        place = ROOT / file
        places = [place] if place.is_file() else sorted((ROOT / "tests").rglob(file))
        if not any(f"def {test}(" in each.read_text("utf-8") for each in places):
            missing.append(f"{file}::{test}")
    assert missing == []
