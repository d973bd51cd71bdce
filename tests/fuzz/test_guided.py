"""A few seconds of guided fuzzing for each target, from the kept inputs on.

Seed and number of inputs are fixed: a change is judged by the same inputs as the one before it.
New ones are what `make fuzz` is for.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.targets import NAMES

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 300  # The number of inputs ends it before, on the busiest machine.
RUNS = {
    "segment": 150,
    "settings": 700,
    "framing": 1_500,
    "directory": 3_000,
    "records": 3_000,
    "tls": 1_500,
}
RUNS_OF_OTHERS = 8_000


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_in_seconds(name: str) -> None:
    """What breaks a promise is written to fuzz/findings and fails; so does a fuzzer that cannot
    run here.
    """
    runs = RUNS.get(name, RUNS_OF_OTHERS)
    command = [sys.executable, "-m", "fuzz", name, "--seconds", str(SECONDS_MAX)]
    ran = subprocess.run(
        [*command, "--runs", str(runs), "--seed", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    executed = next(line for line in ran.stdout.splitlines() if "number_of_executed" in line)
    assert int(executed.split()[-1]) >= runs
