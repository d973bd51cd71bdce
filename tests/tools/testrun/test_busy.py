"""A core that another program takes, and the table of runs beside it."""

from __future__ import annotations

from pathlib import Path

import psutil

from tests.tools.testrun.project import make_documents
from tests.waiting import wait_for
from tools.testrun import busy
from tools.testrun.results import RanTest, SuiteResult, SuiteState

RUN = {
    "date": "2026-01-01",
    "commit": "abc",
    "status": 1,
    "flags": {"suites": ["unit"], "strict": False},
}


def test_one_core_is_taken_until_the_end() -> None:
    """By a process that computes on that core alone, and is gone with the run."""
    with busy.busy_core() as program:
        process = program.process
        core = [max(psutil.Process().cpu_affinity())]
        # Python takes its time to start, in which it computes on any core.
        wait_for("its core", process.cpu_affinity, until=lambda cores: cores == core)
        wait_for("the program at work", program.share, until=lambda share: share > 0.1)
        assert process.nice() == psutil.Process().nice()
    assert not process.is_running()


def test_a_row_has_every_figure(tmp_path: Path) -> None:
    """A red run is a row, too; the file is appended to."""
    make_documents(tmp_path)
    tests = tuple(RanTest(name, "", name, {}) for name in ("passed", "passed", "failed"))
    results = (
        SuiteResult("unit", SuiteState.FAILED, 90.0, tests, flaky=("one",)),
        SuiteResult("kind", SuiteState.NOT_RUN),
    )
    before = (tmp_path / busy.FILE).read_text()
    line = busy.row(results, RUN, minutes=2.25, share=0.5)
    busy.append(tmp_path, line)
    assert (tmp_path / busy.FILE).read_text() == before + line
    assert line == (
        "| 2026-01-01 | abc | unit | no | 50% | 2.2 (unit 1.5) | 2 | 1 | 1 | kind | FAILED |\n"
    )
