"""The versions in docs/about/compatibility.md are those that the tests run with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from barnabas_pipelines.session import SPARK_VERSION
from tools.release import PYTHONS

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = (ROOT / "docs/about/compatibility.md").read_text(encoding="utf-8")
GO: Final = (ROOT / "tests/clients/programs/go/go.mod").read_text(encoding="utf-8")
LOCKED: Final = {
    each["name"]: each["version"]
    for each in tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    if "version" in each
}


def go_version(module: str) -> str:
    """The version of a module that the Go program is built with."""
    found = re.search(rf"{re.escape(module)} v(\S+)", GO)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("client", "version"),
    [
        ("confluent-kafka for Python", LOCKED["confluent-kafka"]),
        ("kafka-python", LOCKED["kafka-python"]),
        ("aiokafka", LOCKED["aiokafka"]),
        ("franz-go", go_version("github.com/twmb/franz-go")),
        ("Sarama", go_version("github.com/IBM/sarama")),
        ("Spark Structured Streaming", SPARK_VERSION),
    ],
)
def test_the_version_of_a_client_is_the_one_that_runs(client: str, version: str) -> None:
    """A locked version that moves on is shown on the page with the same change."""
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {client} |"))
    assert version in re.findall(r"[\d.]+\d", row)


def test_each_python_of_a_release_is_named() -> None:
    """With what was run on it."""
    (row,) = (line for line in PAGE.splitlines() if line.startswith("| Python |"))
    for version in PYTHONS:
        assert version in row
