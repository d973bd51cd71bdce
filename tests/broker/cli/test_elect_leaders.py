"""`barnabas elect-leaders` against three brokers; tests/cluster has leaders to elect."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.cli.cluster import Three, three_brokers
from tests.broker.cli.conftest import Outcome, run_command


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    with three_brokers(tmp_path_factory.mktemp("three")) as running:
        run_command(
            "topics", "create", "orders", "--replica-assignment", "1:2,2:0",
            bootstrap=running.bootstrap,
        )  # fmt: skip
        running.until_assigned("orders", (1, 2), (2, 0))
        yield running


def elect(three: Three, *args: str, fails: int = 0) -> Outcome:
    """Run `barnabas elect-leaders`."""
    return run_command("elect-leaders", *args, bootstrap=three.bootstrap, fails=fails)


def test_partitions_that_are_led_as_they_should_be(three: Three, tmp_path: Path) -> None:
    """By name, of a file, or all: no election is needed, and that is no failure."""
    rows = elect(three, "orders", "--output", "json").json()
    assert rows == [
        {"topic": "orders", "partition": number, "result": "not needed", "leader": leader,
         "reason": None}
        for number, leader in enumerate((1, 2))
    ]  # fmt: skip
    path = tmp_path / "elections.json"
    path.write_text('{"partitions": [{"topic": "orders", "partition": 1}]}')
    assert "not needed" in elect(three, "--file", str(path), "--type", "unclean").stdout
    assert elect(three, "--all").stdout == "Every partition is led as it should be.\n"


def test_a_partition_that_is_not_there(three: Three, tmp_path: Path) -> None:
    """Of a file it is the controller that says so; exit code 1."""
    path = tmp_path / "elections.json"
    path.write_text('{"partitions": [{"topic": "orders", "partition": 9}]}')
    failed = elect(three, "--file", str(path), fails=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in failed.stdout
    assert "1 of 1 elections failed" in failed.stderr
    assert "topic orders has no partition 9" in elect(three, "orders:9", fails=1).stderr


def test_it_must_be_said_which(three: Three, tmp_path: Path) -> None:
    """One way, not none and not two."""
    for wrong in ([], ["t", "--all"], ["t", "--file", "f"]):
        assert "say which partitions" in elect(three, *wrong, fails=2).stderr
    path = tmp_path / "elections.json"
    path.write_text('{"partitions": {}}')
    refused = elect(three, "--file", str(path), fails=2)
    assert f"{path}: partitions: a list of objects is missing" in refused.stderr
