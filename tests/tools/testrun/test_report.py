"""The tables at the end of a run."""

from __future__ import annotations

from tools.testrun.report import (
    begin_line,
    end_line,
    failures,
    slowest,
    slowest_files,
    slowest_tests,
    table,
)
from tools.testrun.results import RanTest, SuiteResult, SuiteState
from tools.testrun.suites import Kind, Suite


def ran(name: str, seconds: float = 1.0, outcome: str = "passed") -> RanTest:
    """A test of a file `a.py` or `b.py`."""
    return RanTest(name, name.partition("::")[0], outcome, {"setup": 0.0, "call": seconds})


RESULTS = [
    SuiteResult("check", SuiteState.PASSED, 60, (RanTest("mypy", "", "passed", {"call": 50.0}),)),
    SuiteResult("unit", SuiteState.FAILED, 180,
                (ran("a.py::1", 4), ran("a.py::2", 5, "failed"), ran("b.py::1", 8),
                 ran("b.py::2", 0, "skipped"))),
    SuiteResult("flaky", SuiteState.FAILED, 0, (ran("c.py::1", 0, "failed"),), "",
                ("c.py::1",)),
    SuiteResult("hung", SuiteState.TIMED_OUT, 60, (), "timed out in d.py::1"),
    SuiteResult("kind", SuiteState.NOT_RUN, reason="not run: needs docker (install it)"),
]  # fmt: skip


def test_the_table_at_the_end() -> None:
    """Counts, minutes, each suite's share, and what came of it, loudly where it is bad."""
    assert table(RESULTS, {"check": 1.0, "unit": 2.5, "kind": 10.0}) == (
        "suite  passed  failed  flaky  minutes  share  expected  result\n"
        "─────  ──────  ──────  ─────  ───────  ─────  ────────  "
        "──────────────────────────────────\n"
        "check       1       0      0      1.0    20%       1.0  passed\n"
        "unit        2       1      0      3.0    60%       2.5  FAILED, 1 skipped\n"
        "flaky       0       0      1      0.0     0%         –  FLAKY\n"
        "hung        0       0      0      1.0    20%         –  TIMED OUT in d.py::1\n"
        "kind        –       –      –        –      –         –  "
        "not run: needs docker (install it)\n"
        "─────  ──────  ──────  ─────  ───────  ─────  ────────  "
        "──────────────────────────────────\n"
        "total       3       1      1      5.0              3.5\n"
    )


def test_slowest_tests_and_files() -> None:
    """The slowest first; a file has the time of its tests; steps are no files."""
    assert slowest_tests(RESULTS, 2) == [(50.0, "check", "mypy"), (8.0, "unit", "b.py::1")]
    assert slowest_files(RESULTS, 2) == [(9.0, "unit", "a.py"), (8.0, "unit", "b.py")]
    text = slowest(RESULTS, 2)
    assert text.startswith("The 2 slowest files\nseconds  suite  file\n")
    assert "   50.0  check  mypy\n" in text


def test_failures_are_named() -> None:
    """Tests that passed on their second chance are not among them."""
    assert failures(RESULTS) == "FAILED  unit: a.py::2\n"


def test_lines_of_progress() -> None:
    """Which of how many, how long it should take, and what came of it."""
    suite = Suite("unit", "every module", Kind.UNIT, 15, 6)
    begins = "[2/9] unit: every module (about 5.0 min, at most 15)"
    assert begin_line(suite, 2, 9, 5.0) == begins
    assert "(time unknown, at most 15)" in begin_line(suite, 2, 9, None)
    ends = "[2/9] unit: 2 passed, 1 failed, 1 skipped in 3.0 min"
    assert end_line(RESULTS[1], 2, 9) == ends
    assert end_line(RESULTS[3], 4, 9).endswith("0 passed in 1.0 min; timed out in d.py::1")
