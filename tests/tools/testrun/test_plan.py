"""The plan: which suites run, what the others lack, and how long it takes."""

from __future__ import annotations

import pytest

from tools.testrun.plan import (
    UnknownSuiteError,
    described,
    make_plan,
    named,
    preparations,
    select,
)
from tools.testrun.requirements import Lack
from tools.testrun.suites import Kind, Preparation, Suite

JAVA = Lack("java", "install java")
MVN = Lack("mvn", "install mvn")


def suite(
    name: str,
    *needs: str,
    covers: tuple[str, ...] = (),
    prepared_by: tuple[str, ...] = (),
) -> Suite:
    """A suite of a name."""
    return Suite(
        name, f"shows {name}", Kind.PROCESSES, 2, 1,
        needs=needs, covers=covers, prepared_by=prepared_by,
    )  # fmt: skip


def test_names_of_suites() -> None:
    """`SUITE="a, b c"` names three."""
    assert named(" a, b  c,a,") == ["a", "b", "c"]
    assert named("") == []


def test_selected_suites_keep_the_order_of_the_table() -> None:
    """Quick ones come first, in whatever order they are named."""
    table = [suite("a"), suite("b"), suite("c")]
    assert [chosen.name for chosen in select(table, ["c", "a"])] == ["a", "c"]
    assert select(table, []) == table
    with pytest.raises(UnknownSuiteError, match="unknown suite x, y; the suites are a, b, c"):
        select(table, ["x", "a", "y"])


def test_suites_without_their_programs_are_left_out() -> None:
    """Each says all that it lacks, and the whole says each once."""
    table = [suite("a"), suite("b", "java"), suite("c", "java", "mvn", "gcc")]
    plan = make_plan(table, {"java": JAVA, "mvn": MVN})
    assert [run.name for run in plan.runs] == ["a"]
    assert plan.reason("c") == "not run: needs java (install java), mvn (install mvn)"
    assert plan.lacks == [JAVA, MVN]


def test_the_text_of_a_plan() -> None:
    """Expected minutes and their sum, what is missing, and the command that installs it."""
    table = [suite("a"), suite("part"), suite("whole", covers=("part",)), suite("b", "java")]
    plan = make_plan(table, {"java": JAVA})
    text = described(plan, table, {"a": 1.5, "whole": 10.75, "part": 3.0})
    assert text.startswith("barnabas: this machine runs 2 of 4 suites, about 12 minutes\n")
    assert "  a       1.5 min  shows a\n" in text
    assert "  part          –  part of whole\n" in text
    assert "  b             –  not run: needs java\n" in text
    assert text.endswith("Missing on this machine:\n  java  install java\n")


def test_unknown_times_are_said() -> None:
    """A suite that no run has measured makes the sum a lower bound."""
    table = [suite("a"), suite("new")]
    text = described(make_plan(table, {}), table, {"a": 3.0})
    assert "about 3 minutes and what new takes" in text


def test_preparations_of_the_suites_that_run() -> None:
    """Each once, the first that is awaited first."""
    known = [Preparation(name, (name,)) for name in ("x", "y", "z")]
    table = [
        suite("a", prepared_by=("y",)),
        suite("b", prepared_by=("x", "y")),
        suite("c", "java", prepared_by=("z",)),
    ]
    plan = make_plan(table, {"java": JAVA})
    assert [preparation.name for preparation in preparations(plan, known)] == ["y", "x"]
