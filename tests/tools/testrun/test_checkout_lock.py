"""One run at a time in a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.testrun.checkout_lock import RunInProgressError, checkout_lock

HOLD = """
import sys, pathlib
from tools.testrun.checkout_lock import checkout_lock
with checkout_lock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_names_the_process_of_the_first(tmp_path: Path) -> None:
    """By its process; a run that was killed holds nothing."""
    directory = tmp_path / ".cache" / "test-run"
    command = [sys.executable, "-c", HOLD, str(directory)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with (
            pytest.raises(RunInProgressError, match=f"process {first.pid};"),
            checkout_lock(directory),
        ):
            raise AssertionError
        first.kill()
    with checkout_lock(directory), pytest.raises(RunInProgressError), checkout_lock(directory):
        raise AssertionError
