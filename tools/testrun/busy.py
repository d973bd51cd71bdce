"""A core that another program takes: `make test BUSY=1` runs the suites beside it.

Its rows stand in docs/contributing/busy-runs.md, one for each whole run. The times of an idle
machine stay in docs/contributing/test-run.json.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from tools.testrun.results import FAILED, PASSED, SuiteResult, SuiteState

FILE: Final = "docs/contributing/busy-runs.md"
# Ends with the runner, also where that is killed.
_PROGRAM: Final = """
import os, sys
core, parent = map(int, sys.argv[1:])
os.sched_setaffinity(0, {core})
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@dataclass(frozen=True, slots=True)
class BusyProgram:
    """A program that computes on one core for as long as it is let."""

    process: psutil.Process
    began: float

    def share(self) -> float:
        """The part of its core that it has had so far, between 0 and 1."""
        times = self.process.cpu_times()
        spent = float(times.user + times.system)
        return spent / max(time.monotonic() - self.began, 1e-6)


@contextmanager
def busy_core() -> Iterator[BusyProgram]:
    """Occupy the last core that this process may use, at the priority of any other program."""
    runner = psutil.Process()
    command = [sys.executable, "-c", _PROGRAM, str(max(runner.cpu_affinity())), str(runner.pid)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            yield BusyProgram(psutil.Process(process.pid), time.monotonic())
        finally:
            process.kill()


def row(
    results: Sequence[SuiteResult], run: Mapping[str, Any], *, minutes: float, share: float
) -> str:
    """A run as a line of the table; `share` is what the other program had of its core."""
    flags = run["flags"]
    ran = [result for result in results if result.state is not SuiteState.NOT_RUN]
    left_out = ", ".join(result.name for result in results if result not in ran)
    counts = [sum(result.count(outcome) for result in ran) for outcome in (PASSED, FAILED)]
    times = ", ".join(f"{result.name} {result.seconds / 60:.1f}" for result in ran)
    cells = (
        run["date"],
        run["commit"],
        ", ".join(flags["suites"]) or "all",
        "yes" if flags["strict"] else "no",
        f"{share:.0%}",
        f"{minutes:.1f} ({times})",
        *counts,
        sum(len(result.flaky) for result in ran),
        left_out or "none",
        "passed" if run["status"] == 0 else "FAILED",
    )
    return f"| {' | '.join(map(str, cells))} |\n"


def append(root: Path, line: str) -> None:
    """Add a line to the table, which ends the file."""
    with (root / FILE).open("a", encoding="utf-8") as file:
        file.write(line)
