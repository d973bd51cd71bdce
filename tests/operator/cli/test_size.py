"""`barnabas size`: from a file, from options, and what is wrong with either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from barnabas_broker.cli.main import main
from tests.operator import examples

SIZING = {"messagesPerDay": 1_000_000, "averageMessageBytes": 1000, "retention": "1d"}


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["size", *map(str, arguments)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A KafkaCluster whose disk is to be reckoned, beside a topic."""
    cluster = examples.cluster(brokers={"storage": {"sizing": SIZING}})
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([examples.topic(), cluster]))
    return path


def test_options_show_the_arithmetic() -> None:
    """Line by line down to the claim."""
    result = _run("--messages-per-day", "1000000", "--average-message-bytes", "1000")
    assert result.exit_code == 0, result.output
    assert "retained: 1,000,000 per day × 7 days = 7,000,000 messages" in result.output
    assert result.output.splitlines()[-1].startswith("  claim: ")


def test_a_file_gives_the_same_as_its_factors(file: Path) -> None:
    """The same arithmetic, wherever the factors come from."""
    from_file = json.loads(_run(file, "--output", "json").output)["quickstart"]
    options = ("--messages-per-day", "1000000", "--average-message-bytes", "1000")
    given = json.loads(_run(*options, "--retention", "1d", "--output", "json").output)["brokers"]
    assert from_file == given
    assert from_file["claimBytes"] > from_file["logBytes"] > 10**9


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give either FILE or factors"),
        (("--replicas", "2"), "options.messagesPerDay: is missing"),
        (("--messages-per-day", "0", "--average-message-bytes", "1"), "must be between 1 and"),
        ((examples.QUICKSTART,), "has a size (2Gi), no sizing"),
    ],
)
def test_wrong_usage(arguments: tuple[str | Path, ...], words: str) -> None:
    """One line that says what to do; exit code 2."""
    result = _run(*arguments)
    assert result.exit_code == 2
    assert words in result.output


def test_a_file_without_cluster(tmp_path: Path) -> None:
    """A file of something else is told so, and so is one that is no YAML."""
    path = tmp_path / "file.yaml"
    path.write_text(yaml.safe_dump(examples.topic()))
    assert "there is no KafkaCluster in it" in _run(path).output
    path.write_text("a: [")
    assert _run(path).exit_code == 2
