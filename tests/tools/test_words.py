"""The word list looks at pages for users, and at prose alone."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

import pytest

from tools.words import findings, messages, names, prose


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("docs/install.md", "Start the broker anew.", [1]),
        ("docs/install.md", "Ask\nWhom it waits for", [2]),
        ("README.md", "whoever reads it", [1]),
        ("docs/users.md", "Nobody is told.", [1, 1]),
        ("docs/tasks/a.md", "Each row is `tests/clients/test_a.py`", [1]),
        ("docs/tasks/a.md", "see test_a.py", [1]),
        ("docs/security.md", "| attack | `test_a.py` |", []),
        ("docs/install.md", "`anew` is a word in code", []),
        ("docs/install.md", "```\nanew tests/a\n```", []),
        ("docs/adr/0001-a.md", "anew", []),
        ("docs/contributing/a.md", "whoever runs tests/a", []),
        ("changelog.d/a.added.md", "anew", []),
        ("docs/install.md", "A new broker starts.", []),
    ],
)
def test_words_of_a_page(path: str, text: str, lines: list[int]) -> None:
    """What is found, and where."""
    assert [line for line, _ in findings(PurePosixPath(path), text)] == lines


@pytest.mark.parametrize(
    ("path", "code", "lines"),
    [
        ("libs/kafka/src/a.py", "log.info('nobody has come')", [1]),
        ("libs/kafka/src/a.py", "x = f'{n} of us\\nare told'", [1]),
        ("libs/kafka/src/a.py", "'nobody has come'\ndef told(): 'what nobody is told'", []),
        ("libs/kafka/src/a.py", "told = {'told': 1}", []),
        ("tests/a.py", "log.info('nobody has come')", []),
    ],
)
def test_words_of_messages(path: str, code: str, lines: list[int]) -> None:
    """Names and docstrings have rules of their own."""
    found = messages(PurePosixPath(path), ast.parse(code))
    assert [line for line, _ in found] == lines


@pytest.mark.parametrize(
    ("path", "code", "lines"),
    [
        ("libs/kafka/src/a.py", "def begin_upkeep(): pass", [1]),
        ("libs/kafka/src/a.py", "class TheReign: pass\nself.upkeep = reign = 1", [1, 2, 2]),
        ("libs/kafka/src/a.py", "def foreign(): upkeep()", []),
        ("libs/kafka/src/departures.py", "", [1]),
        ("libs/kafka/src/a.py", "told = 1\ndef f(tell, _heard_ms): untold()", [1, 2, 2]),
        ("tests/a.py", "told = 1", []),
        ("tests/a.py", "def test_who_is_told(): pass\nasync def test_a(): pass", [1, 1]),
        ("tests/a.py", "def test_what_is_none(): pass", [1]),
        ("tests/a.py", "def test_a_retold_whole_standby(): pass\ndef told(): pass", []),
    ],
)
def test_names_that_do_not_come_back(path: str, code: str, lines: list[int]) -> None:
    """Where they are defined, and in parts."""
    found = names(PurePosixPath(path), ast.parse(code))
    assert sorted(line for line, _ in found) == lines


@pytest.mark.parametrize(
    ("path", "code", "lines"),
    [
        ("operator/src/a.py", '"""What nobody\nis told."""', [1, 2]),
        ("operator/src/a.py", "x = 1  # Whoever reads it.", [1]),
        ("operator/src/a.py", '"""What `told` holds; cannot be told apart."""', []),
        ("operator/src/a.py", "x = 'told'", []),
        ("tests/a.py", "x = 1  # Whoever reads it.", []),
    ],
)
def test_words_of_product_code(path: str, code: str, lines: list[int]) -> None:
    """Docstrings and comments, line by line."""
    assert [line for line, _ in prose(PurePosixPath(path), code)] == lines
