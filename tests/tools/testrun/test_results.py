"""Events become results, and results an exit status."""

from __future__ import annotations

import json

import pytest

from tools.testrun.results import (
    Events,
    RanTest,
    SuiteResult,
    SuiteState,
    ended_early,
    exit_status,
    judged,
    read_events,
    result_from_json,
    with_flaky,
)

GOOD = RanTest("f.py::good", "f.py", "passed", {"setup": 0.5, "call": 1.0})
BAD = RanTest("f.py::bad", "f.py", "failed", {"call": 2.0})


def event(name: str, outcome: str = "passed") -> str:
    """A line of a test that has ended."""
    fields = {"id": name, "file": "f.py", "outcome": outcome, "phases": {}, "failures": []}
    return json.dumps({"event": "test", **fields})


def start(name: str) -> str:
    """A line of a test that begins."""
    return json.dumps({"event": "start", "id": name})


def test_events_of_a_run_that_was_killed() -> None:
    """A line that is cut off is left out; what has begun and not ended was running."""
    events = read_events([start("a"), event("a"), start("b"), start("c"), event("c")[:20]])
    assert [test.node_id for test in events.tests] == ["a"]
    assert events.running == ("b", "c")
    assert events.status is None


@pytest.mark.parametrize(
    ("tests", "written", "status", "state"),
    [
        ((GOOD,), 0, 0, SuiteState.PASSED),
        ((GOOD, BAD), 1, 1, SuiteState.FAILED),
        ((), 0, 0, SuiteState.CRASHED),
        ((), 5, 5, SuiteState.CRASHED),
        ((BAD,), 2, 2, SuiteState.CRASHED),
        ((GOOD,), 1, 1, SuiteState.CRASHED),
        ((GOOD, BAD), None, 1, SuiteState.CRASHED),
        ((GOOD,), 0, -11, SuiteState.CRASHED),
    ],
)
def test_a_run_is_judged_by_its_end(
    tests: tuple[RanTest, ...], written: int | None, status: int, state: SuiteState
) -> None:
    """Only a run that came to its own end, and whose status fits its tests, passed or failed."""
    result = judged("s", Events(tests, (), written), status=status, seconds=3)
    assert result.state is state
    assert bool(result.reason) == (state is SuiteState.CRASHED)


def test_a_run_that_was_ended_names_its_tests() -> None:
    """Three of those that were running, and how many more."""
    events = Events((GOOD,), ("a", "b", "c", "d"))
    result = ended_early("s", SuiteState.TIMED_OUT, events, seconds=1)
    assert result.reason == "timed out in a, b, c and 1 more"
    assert not result.is_good
    assert result.count("passed") == 1


def test_flaky_tests_are_neither_passed_nor_failed() -> None:
    """With its only failure flaky a suite is good; with another it is not."""
    result = SuiteResult("s", SuiteState.FAILED, 1, (GOOD, BAD))
    (flaky,) = with_flaky([result], [BAD.node_id, "another"])
    assert flaky.is_good
    assert (flaky.count("passed"), flaky.count("failed"), flaky.flaky) == (1, 0, (BAD.node_id,))
    worse = RanTest("f.py::worse", "f.py", "failed", {})
    (mixed,) = with_flaky([SuiteResult("s", SuiteState.FAILED, 1, (BAD, worse))], [BAD.node_id])
    assert not mixed.is_good


def test_exit_status() -> None:
    """0 only where all that ran is good, something ran, and all that must run did."""
    good = SuiteResult("a", SuiteState.PASSED, 1, (GOOD,))
    bad = SuiteResult("b", SuiteState.FAILED, 1, (BAD,))
    left_out = SuiteResult("c", SuiteState.NOT_RUN)
    assert exit_status([good, left_out], all_must_run=False) == 0
    assert exit_status([good, left_out], all_must_run=True) == 1
    assert exit_status([good, bad], all_must_run=False) == 1
    assert exit_status([left_out], all_must_run=False) == 1
    assert exit_status([], all_must_run=False) == 1


def test_a_result_is_read_back() -> None:
    """What a run leaves is enough to record it later."""
    result = SuiteResult("s", SuiteState.FAILED, 1.0, (GOOD, BAD), "why", (BAD.node_id,))
    assert result_from_json(json.loads(json.dumps(result.as_json()))) == result
