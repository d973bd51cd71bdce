"""The committed record of the last full run, and the table of the testing page made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.testrun.project import make_documents
from tools.testrun import record
from tools.testrun.results import RanTest, SuiteResult, SuiteState
from tools.testrun.suites import SUITES, Kind, Suite

RUN = {"date": "2026-01-01", "commit": "abc", "cores": 2, "python": "3.13.1", "flags": {}}
EMPTY: record.Record = {"suites": {}, "tests": [], "files": []}


def result(name: str, seconds: float, state: SuiteState = SuiteState.PASSED) -> SuiteResult:
    """A suite of one test that took all its time."""
    test = RanTest(f"{name}.py::test", f"{name}.py", state.value, {"call": seconds})
    return SuiteResult(name, state, seconds, (test,))


def test_a_record_is_written_and_read(tmp_path: Path) -> None:
    """It is empty where there is none, and read as it was written."""
    make_documents(tmp_path)
    assert record.read(tmp_path) == EMPTY
    made = record.merged(EMPTY, [result("unit", 90), result("check", 60)], RUN)
    record.write(tmp_path, made)
    assert record.read(tmp_path) == made
    assert record.expected_minutes(made) == {"check": 1.0, "unit": 1.5}
    assert made["suites"]["unit"]["passed"] == 1
    assert made["suites"]["unit"]["commit"] == "abc"
    assert made["tests"][0] == [90.0 * 1, "unit", "unit.py::test"]
    written = (tmp_path / record.DOCUMENT).read_text()
    assert record.table(SUITES, made) in written
    assert written == record.document(tmp_path)  # `make check` has nothing to ask for.


def test_only_good_suites_replace_their_figures() -> None:
    """What failed, or did not run, keeps what was measured before."""
    before = record.merged(EMPTY, [result("unit", 90), result("check", 60)], RUN)
    after = record.merged(
        before, [result("unit", 30), result("check", 6, SuiteState.FAILED)], RUN | {"commit": "d"}
    )
    assert record.expected_minutes(after) == {"check": 1.0, "unit": 0.5}
    assert after["suites"]["unit"]["commit"] == "d"
    assert after["suites"]["check"]["commit"] == "abc"
    assert after["files"] == [[60.0, "check", "check.py"], [30.0, "unit", "unit.py"]]


def test_forty_are_kept() -> None:
    """The record stays small."""
    results = [result(f"s{number}", number) for number in range(50)]
    made = record.merged(EMPTY, results, RUN)
    assert len(made["tests"]) == len(made["files"]) == 40
    assert made["tests"][0][0] == 49


def test_the_table_of_the_document() -> None:
    """A row for each suite; the sum leaves out what is part of another."""
    part = Suite("part", "a part", Kind.PROCESSES, 4, 2)
    whole = Suite("whole", "all", Kind.PROCESSES, 8, 5, needs=("java", "mvn"), covers=("part",))
    unit = Suite("unit", "modules", Kind.UNIT, 3, 1)
    made = {
        "suites": {"whole": {"minutes": 4.25}, "part": {"minutes": 1}},
        "tests": [],
        "files": [],
    }
    assert record.table((part, whole, unit), made).splitlines()[2:] == [
        "| `part` | a part (part of the next) | Python | yes | 2 | 1.0 | 4 |",
        "| `whole` | all | java, mvn | yes | 5 | 4.2 | 8 |",
        "| `unit` | modules | Python | never | 1 |  | 3 |",
        "| **All** | | | | **6** | **4.2** | |",
    ]


def test_only_the_marked_part_is_generated() -> None:
    """The rest of the document is people's; one without the markers is refused."""
    text = f"before\n{record.BEGIN}\nold\n{record.END}\nafter\n"
    expected = f"before\n{record.BEGIN}\n\nnew\n\n{record.END}\nafter\n"
    assert record.with_table(text, "new") == expected
    assert record.with_table(expected, "new") == expected
    with pytest.raises(ValueError, match="no part between"):
        record.with_table("text", "new")


def test_the_committed_record_is_whole() -> None:
    """Every suite of the table that is no part of another has its minutes."""
    known = record.expected_minutes(record.read(record.ROOT))
    parts = {part for suite in SUITES for part in suite.covers}
    assert {suite.name for suite in SUITES} - parts <= known.keys()
    assert known.keys() <= {suite.name for suite in SUITES}
