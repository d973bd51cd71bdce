"""Who has a second chance, and what is kept of the first failure."""

from __future__ import annotations

from pathlib import Path

from tests.tools.testrun.project import pytest_suite
from tools.testrun.results import Failure, RanTest, SuiteResult, SuiteState
from tools.testrun.second_chance import Candidate, candidates, keep_evidence, notice, slug
from tools.testrun.suites import Kind

PROCESSES = pytest_suite("processes", "p.py")
UNIT = pytest_suite("unit", "u.py", kind=Kind.UNIT)


def failed(suite: str, count: int, state: SuiteState = SuiteState.FAILED) -> SuiteResult:
    """A suite with so many failed tests and a good one."""
    bad = [RanTest(f"{suite}.py::bad{n}", "", "failed", {}) for n in range(count)]
    return SuiteResult(suite, state, 1, (*bad, RanTest("good", "", "passed", {})))


def again(*results: SuiteResult) -> list[str]:
    """The tests that run again."""
    return [candidate.test.node_id for candidate in candidates((PROCESSES, UNIT), results)]


def test_three_failures_in_the_whole_run() -> None:
    """Those of unit tests count, though they have no second chance themselves."""
    three = ["processes.py::bad0", "processes.py::bad1", "processes.py::bad2"]
    assert again(failed("processes", 3)) == three
    assert again(failed("processes", 4)) == []
    assert again(failed("processes", 2), failed("unit", 1)) == three[:2]
    assert again(failed("processes", 3), failed("unit", 1)) == []


def test_only_a_suite_that_ran_to_its_end() -> None:
    """Where a suite crashed or hung, a test that passes alone would hide that."""
    for state in (SuiteState.CRASHED, SuiteState.TIMED_OUT, SuiteState.INTERRUPTED):
        assert again(failed("processes", 1, state)) == []


def test_the_directory_of_a_test() -> None:
    """Characters of parameters do not reach the file system."""
    assert slug("tests/a/test_b.py::test_c[x/y: z]") == "tests-a-test_b.py-test_c-x-y-z"
    assert len(slug("x" * 1000)) == 150


def test_evidence_that_the_suite_leaves_is_copied(tmp_path: Path) -> None:
    """The second run would overwrite it; what an earlier flake left is replaced."""
    suite = pytest_suite("kind", "e2e", evidence=".cache/e2e")
    own = tmp_path / ".cache" / "e2e" / "test_it[a-b]"
    own.mkdir(parents=True)
    (own / "pods.txt").write_text("Pending")
    failure = Failure("call", "why", (("evidence", "logs are in x"),), "2026-01-01", {"io": "0"})
    test = RanTest("e2e/test_x.py::test_it[a/b]", "e2e/test_x.py", "failed", {}, (failure,))
    directory = tmp_path / "flaky"
    directory.mkdir()
    (directory / "old.txt").touch()
    keep_evidence(
        Candidate(suite, test),
        directory,
        root=tmp_path,
        log=tmp_path / "none",
        about={"commit": "c"},
    )
    assert (directory / "evidence" / "pods.txt").read_text() == "Pending"
    assert sorted(path.name for path in directory.iterdir()) == [
        "about.json", "evidence", "failure.txt", "output.txt",
    ]  # fmt: skip


def test_the_notice_names_test_and_evidence() -> None:
    """It ends with what to do; without flakes there is nothing to say."""
    text = notice([("a.py::test_x", Path(".cache/flaky/a"))])
    assert text.startswith("FLAKY  a.py::test_x\n")
    assert ".cache/flaky/a" in text
    assert "docs/contributing/flakes.md" in text
    assert notice([]) == ""
