"""The report shows medians, ranges, ratios, bars and failures, and counts no warm-up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import plot, report
from benchmarks.limits import Limit
from benchmarks.model import Metric, Run, Sample

ROW = "raw produce, 64 KiB batches, 1 connection x 5"


def run(target: str, number: int, rate: float, cpu: float) -> Run:
    """One run of one row."""
    sample = Sample(
        row=ROW,
        values={Metric.MB_RATE: rate, Metric.CPU_PER_MB: cpu},
        detail={"other_cores": 0.25},
    )
    return Run(case="raw-64k", target=target, round=number, samples=(sample,))


@pytest.fixture
def outcome() -> report.Outcome:
    """Two targets, two counted runs each, a warm-up, and a failure."""
    return report.Outcome(
        command="python -m benchmarks",
        quick=False,
        began="2026-11-20 10:00:00 UTC",
        ended="10:20:00 UTC",
        targets=[("apache", "Apache Kafka 3.9.1"), ("barnabas", "Barnabas")],
        descriptions={"apache": {"heap": "1G"}, "barnabas": {"version": "barnabas 0.1.0"}},
        machine={"memory": "24 GiB"},
        limits=[Limit("pwrite", 2300.0, 0.43)],
        runs=[
            run("apache", 0, 1.0, 99.0),
            run("apache", 1, 350.0, 2.0),
            run("apache", 2, 450.0, 2.2),
            run("barnabas", 1, 1200.0, 1.0),
            run("barnabas", 2, 1000.0, 1.4),
            Run(case="notes", target="apache", round=1, samples=(), error="OSError: gone\naway"),
        ],
    )


def test_table_has_medians_ranges_ratios_and_verdicts(outcome: report.Outcome) -> None:
    """1100 over 400 meets the bar of 2.5, 1.2 over 2.1 misses that of 0.5."""
    text = report.markdown(outcome)
    rate = f"| {ROW} | MB/s | 400 (350–450) | 1,100 (1,000–1,200) | 2.75x | ≥ 2.5x | met |"
    cpu = "| 2.10 (2.00–2.20) | 1.20 (1.00–1.40) | 0.57x | ≤ 0.5x | **missed** |"
    assert rate in text
    assert cpu in text


def test_report_says_command_settings_limits_interference_and_failures(
    outcome: report.Outcome,
) -> None:
    """Whoever reads the table can see how it came about."""
    text = report.markdown(outcome)
    assert "`python -m benchmarks`, 2026-11-20 10:00:00 UTC to 10:20:00 UTC" in text
    assert "**Apache Kafka 3.9.1**: heap 1G." in text
    assert "| pwrite | 2,300 | 0.430 |" in text
    assert "median 0.25, at most 0.25" in text
    assert "- notes, apache, round 1: OSError: gone away" in text


def test_raw_runs_and_plot_are_written(outcome: report.Outcome, tmp_path: Path) -> None:
    """Every run is kept, the warm-up too, and the picture exists."""
    report.write(outcome, tmp_path)
    raw = json.loads((tmp_path / "runs.json").read_text())
    assert [entry["round"] for entry in raw["runs"]] == [0, 1, 2, 1, 2, 1]
    assert raw["runs"][1]["samples"][0]["values"]["MB/s"] == 350.0
    assert plot.write(outcome, tmp_path)
    assert {path.name for path in tmp_path.glob("ratios.*")} == {"ratios.svg"}


@pytest.mark.parametrize(
    ("value", "text"), [(0.03121, "0.0312"), (4.566, "4.57"), (187.4, "187"), (23600, "23,600")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    """More digits would claim a precision the runs do not have."""
    assert report.number(value) == text


def test_a_page_says_what_was_run_and_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the figures can take them again; without a directory nothing is written."""
    monkeypatch.setattr(sys, "argv", ["…", "--runs", "1 2"])
    page = report.Page("Widths", "benchmarks.widths", tmp_path)
    page.write(None, "nothing")
    page.write(tmp_path / "out", "| a |", f"| {report.runs_cell([3, 1, 2])} |")
    written = (tmp_path / "out" / "README.md").read_text()
    assert written.startswith("# Widths\n\n`python -m benchmarks.widths --runs '1 2'`, 20")
    assert " UTC.\n\n**Machine**: " in written
    assert written.endswith("\n| a |\n| 2.00 (1.00 to 3.00) |")
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    assert report.runs_cell([]) == ""
