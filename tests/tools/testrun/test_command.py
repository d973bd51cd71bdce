"""The command behind `make test`, as it is called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [sys.executable, "-m", "tools.testrun", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_unknown_suite_is_an_error_that_names_the_known_ones() -> None:
    """A misspelt name is seen at once."""
    done = run_command("--suite", "clientz, check")
    assert done.returncode == 2
    assert "unknown suite clientz; the suites are check, docs, simulator, unit" in done.stdout


def test_ci_fails_before_the_first_test(tmp_path: Path) -> None:
    """With nothing on the path CI sees all that is missing, and no suite begins."""
    done = run_command("--suite", "clients,kind", CI="true", PATH=str(tmp_path))
    assert done.returncode == 1
    for words in ("kcat          apt-get install kcat", "helm          see docs/kubernetes.md"):
        assert words in done.stdout
    assert done.stdout.endswith("CI=true, and programs are missing: no test was run\n")


def test_a_series_ends_with_its_first_red_run() -> None:
    """REPEAT=3 is three runs only if each of them is green."""
    done = run_command("--suite", "clientz", "--repeat", "3")
    assert done.returncode == 2
    assert "barnabas: run 1 of 3\n" in done.stdout
    assert "run 2 of 3" not in done.stdout


@pytest.mark.parametrize("number", ["0", "-1", "", "three"])
def test_a_series_has_at_least_one_run(number: str) -> None:
    """Otherwise nothing would be tested, and that would be green."""
    done = run_command("--suite", "check", f"--repeat={number}")
    assert done.returncode == 2
    assert f"not a number from 1 on: {number!r}" in done.stderr
