"""Measuring a real broker."""

from pathlib import Path

import pytest

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run, run_command
from tests.waiting import seconds

WITHOUT_RECORDS = 0.1
"""Seconds of an idle machine that are more than enough; also the time in which nothing comes."""


@pytest.mark.kafka_topic(partitions=2)
def test_producing_and_consuming(run: Run, kafka_topic: str, tmp_path: Path) -> None:
    """As many records as asked for, with rates, percentiles in order, and a picture."""
    picture = tmp_path / "latency.png"
    sent = run("perf", "produce", kafka_topic, "--records", "2000", "--size", "100",
               "--plot", str(picture), "--output", "json").json()  # fmt: skip
    assert sent["records"] == 2000
    assert sent["mib_per_s"] > 0
    found = sent["latency_ms"]["acknowledged"]
    assert 0 < found["p50"] <= found["p95"] <= found["p99"] <= found["p99.9"] <= found["max"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    read = run("perf", "consume", kafka_topic, "--records", "2000", "--output", "json").json()
    assert read["records"] == 2000
    assert read["joining_seconds"] <= read["seconds"]


def test_the_text_has_figures_and_a_histogram(run: Run, kafka_topic: str) -> None:
    """Every record is in one of its bars."""
    printed = run("perf", "produce", kafka_topic, "--records", "300").stdout
    assert "records per s" in printed
    bars = [line for line in printed.splitlines() if " - " in line]
    assert sum(int(line.split()[-1]) for line in bars) == 300


def test_too_few_records_are_reported(run: Run, kafka_topic: str) -> None:
    """It does not wait for ever, and says what it got."""
    run("perf", "produce", kafka_topic, "--records", "10")
    outcome = run("perf", "consume", kafka_topic, "--records", "20",
                  "--idle-timeout", str(seconds(WITHOUT_RECORDS)), fails=1)  # fmt: skip
    assert "10 of 20 records came" in outcome.stderr


@pytest.mark.kafka_topic(partitions=3)
def test_the_way_of_single_records(run: Run, kafka_topic: str, tmp_path: Path) -> None:
    """Nothing is read before it is sent; what was in the topic before is passed over."""
    run("perf", "produce", kafka_topic, "--records", "100")
    found = run("perf", "latency", kafka_topic, "--records", "20", "--output", "json",
                "--plot", str(tmp_path / "latency.svg")).json()  # fmt: skip
    assert found["records"] == 20
    assert found["latency_ms"]["acknowledged"]["p50"] > 0
    assert found["latency_ms"]["read"]["p50"] > 0
    assert "<svg" in (tmp_path / "latency.svg").read_text()


def test_a_limit_is_kept(run: Run, kafka_topic: str) -> None:
    """Fifty records at a hundred a second take half a second at least."""
    found = run("perf", "produce", kafka_topic, "--records", "50", "--throughput", "100",
                "--output", "json").json()  # fmt: skip
    assert found["seconds"] >= 0.49


@pytest.mark.parametrize("name", ["latency.bmp", "absent/latency.png"])
def test_an_unwritable_plot_is_reported_before_the_measurement(
    kafka_broker: Broker, tmp_path: Path, name: str
) -> None:
    """Nothing is measured in vain."""
    outcome = run_command("perf", "produce", "t", "--plot", str(tmp_path / name),
                          bootstrap=kafka_broker.bootstrap_servers, fails=2)  # fmt: skip
    assert "--plot" in outcome.stderr
