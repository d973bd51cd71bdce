"""The map of the sources names files that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("broker-image/src", "libs/kafka/src", "libs/zookeeper/src", "operator/src")
PACKAGES: Final = (
    *(ROOT / each for each in SOURCES),
    *(inner for each in SOURCES for inner in (ROOT / each).iterdir() if inner.is_dir()),
    ROOT / "broker-image/src/barnabas_broker/server",
    ROOT / "libs/kafka/src/barnabas_kafka/settings",
    ROOT,
)
_NAMED: Final = re.compile(r"`([a-z_/{},.]+(?:\.py|/))`")


def alternatives(text: str) -> Iterator[str]:
    """The paths that `a/{b,c}.py` stands for."""
    head, brace, rest = text.partition("{")
    if not brace:
        yield text
        return
    inner, _, tail = rest.partition("}")
    for each in inner.split(","):
        yield from alternatives(head + each + tail)


def named() -> list[str]:
    """All paths of the page."""
    text = (ROOT / "docs/ARCHITECTURE.md").read_text("utf-8")
    return sorted({path for found in _NAMED.findall(text) for path in alternatives(found)})


@pytest.mark.parametrize("path", named())
def test_a_path_of_the_map_is_there(path: str) -> None:
    """Below a source folder, a package, the server or the settings."""
    assert any((package / path).exists() for package in PACKAGES)
