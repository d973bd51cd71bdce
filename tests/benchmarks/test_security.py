"""The benchmark of security runs from end to end, and every bar of it has its row."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.bars import SECURITY
from benchmarks.clients import REPOSITORY
from tests.waiting import RUN, seconds


def quick(output: Path, *options: str) -> set[str]:
    """Run it with small amounts; returns the rows it measured."""
    command = [sys.executable, "-m", "benchmarks.security", "--quick", "--output", str(output)]
    done = subprocess.run(
        [*command, *options],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=seconds(2 * RUN),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(file.read_text()) for file in output.glob("*/runs.json")]
    return {row["row"] for each in found for run in each["runs"] for row in run["samples"]}


@pytest.mark.soak
def test_handshakes_are_counted_on_both_brokers(tmp_path: Path) -> None:
    """With TLS alone, with SCRAM behind it, and connections that stay."""
    cases = ("tls-handshakes", "scram-handshakes", "kept-connections")
    rows = quick(tmp_path, "--only", "connections", "--cases", ",".join(cases))
    assert len(rows) == len(cases)


def test_small_requests_are_counted_with_acls_and_without(tmp_path: Path) -> None:
    """What the anonymous principal needs is among the rules."""
    assert len(quick(tmp_path, "--only", "acls", "--cases", "acls-requests")) == 1


@pytest.mark.soak
def test_every_bar_of_security_has_its_row(tmp_path: Path) -> None:
    """A bar whose row no case produces would silently never be judged."""
    assert quick(tmp_path) == set(SECURITY)
