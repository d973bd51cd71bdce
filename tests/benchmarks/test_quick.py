"""A quick benchmark runs from end to end on a real broker and leaves a report behind.

Nothing here looks at how fast anything was.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.bars import ONE_BROKER
from benchmarks.clients import REPOSITORY
from tests.waiting import RUN, seconds


def quick(output: Path, *options: str) -> set[str]:
    """Run a quick benchmark; returns the rows it measured."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--output", str(output), *options],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    raw = json.loads((output / "runs.json").read_text())
    assert (output / "README.md").exists()
    return {sample["row"] for entry in raw["runs"] for sample in entry["samples"]}


def test_some_cases_of_every_client_on_barnabas(tmp_path: Path) -> None:
    """The raw, librdkafka and Java clients each measure something and nothing fails."""
    cases = "latency,raw-64k,raw-fetch,librdkafka-producer,notes,rebalance-100,commits"
    rows = quick(tmp_path, "--only", "barnabas", "--cases", cases)
    assert len(rows) == 10


@pytest.mark.soak
def test_every_case_on_both_brokers_and_every_bar_has_its_row(tmp_path: Path) -> None:
    """A bar whose row no case produces would silently never be judged."""
    rows = quick(tmp_path)
    assert set(ONE_BROKER) <= rows
    assert (tmp_path / "ratios.svg").exists()
