"""What suites came to: the events of a run of pytest read back, judged, and counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any, Final

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"

# pytest's exit status when tests ran to the end.
_ALL_PASSED: Final = 0
_SOME_FAILED: Final = 1
SHOWN_RUNNING: Final = 3


class SuiteState(Enum):
    """How a suite ended."""

    PASSED = "passed"  # Every test passed.
    FAILED = "failed"  # It ran to its end, and some tests failed.
    CRASHED = "crashed"  # It did not run to its end: what has not run is unknown.
    TIMED_OUT = "timed out"  # It met its limit and was ended.
    INTERRUPTED = "interrupted"  # The user ended the run.
    NOT_RUN = "not run"  # It did not begin.


@dataclass(frozen=True, slots=True)
class Failure:
    """What a test said when it failed, and how busy the machine was."""

    phase: str
    text: str
    sections: tuple[tuple[str, str], ...] = ()
    at: str = ""
    load: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RanTest:
    """One test, or one step of a suite of steps; these have no file."""

    node_id: str
    file: str
    outcome: str
    phases: Mapping[str, float]
    failures: tuple[Failure, ...] = ()

    @property
    def seconds(self) -> float:
        """The time of all phases."""
        return sum(self.phases.values())


@dataclass(frozen=True, slots=True)
class Events:
    """The events of one run: tests that ended, tests that had only begun, the exit status."""

    tests: tuple[RanTest, ...] = ()
    running: tuple[str, ...] = ()
    status: int | None = None


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """What one suite came to; `flaky` names tests that failed and passed on their second chance."""

    name: str
    state: SuiteState
    seconds: float = 0.0
    tests: tuple[RanTest, ...] = ()
    reason: str = ""
    flaky: tuple[str, ...] = ()

    def count(self, outcome: str) -> int:
        """How many tests had this outcome; flaky ones have none."""
        return sum(test.outcome == outcome and not self.is_flaky(test) for test in self.tests)

    def is_flaky(self, test: RanTest) -> bool:
        """Whether a test passed only on its second chance."""
        return test.node_id in self.flaky

    @property
    def failed(self) -> list[RanTest]:
        """The tests that failed and are not flaky."""
        return [t for t in self.tests if t.outcome == FAILED and not self.is_flaky(t)]

    @property
    def is_good(self) -> bool:
        """Whether every test passed, at least on its second chance."""
        if self.state is SuiteState.FAILED:
            return bool(self.flaky) and not self.failed
        return self.state is SuiteState.PASSED

    def as_json(self) -> dict[str, Any]:
        """All of it, for `.cache/test-run/<suite>.json`."""
        return {
            "suite": self.name,
            "state": self.state.value,
            "reason": self.reason,
            "seconds": round(self.seconds, 1),
            "flaky": list(self.flaky),
            "tests": [asdict(test) for test in self.tests],
        }


def result_from_json(value: Mapping[str, Any]) -> SuiteResult:
    """The reverse of `as_json`."""
    return SuiteResult(
        value["suite"],
        SuiteState(value["state"]),
        value["seconds"],
        tuple(map(_test, value["tests"])),
        value["reason"],
        tuple(value["flaky"]),
    )


def read_events(lines: Iterable[str]) -> Events:
    """Read events; the last line may be cut off by the end of its writer."""
    tests: list[RanTest] = []
    running: dict[str, None] = {}
    status = None
    for line in lines:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if event["event"] == "start":
            running[event["id"]] = None
        elif event["event"] == "end":
            status = event["status"]
        else:
            test = _test(event | {"node_id": event["id"]})
            running.pop(test.node_id, None)
            tests.append(test)
    return Events(tuple(tests), tuple(running), status)


def _test(value: Mapping[str, Any]) -> RanTest:
    failures = tuple(
        Failure(
            failure["phase"],
            failure["text"],
            tuple((title, text) for title, text in failure["sections"]),
            failure["at"],
            failure["load"],
        )
        for failure in value["failures"]
    )
    return RanTest(value["node_id"], value["file"], value["outcome"], value["phases"], failures)


def judged(name: str, events: Events, *, status: int, seconds: float) -> SuiteResult:
    """The result of a run of pytest that ended by itself with an exit status."""
    failed = any(test.outcome == FAILED for test in events.tests)
    state, reason = SuiteState.CRASHED, f"crashed: exit status {status}{_while(events)}"
    if events.status == status == _SOME_FAILED and failed:
        state, reason = SuiteState.FAILED, ""
    elif events.status == status == _ALL_PASSED and events.tests and not failed:
        state, reason = SuiteState.PASSED, ""
    return SuiteResult(name, state, seconds, events.tests, reason)


def ended_early(name: str, state: SuiteState, events: Events, *, seconds: float) -> SuiteResult:
    """The result of a run that its limit or the user ended; says which tests were running."""
    return SuiteResult(name, state, seconds, events.tests, f"{state.value}{_while(events)}")


def _while(events: Events) -> str:
    if not events.running:
        return ""
    more = len(events.running) - SHOWN_RUNNING
    names = ", ".join(events.running[:SHOWN_RUNNING])
    return f" in {names}{f' and {more} more' if more > 0 else ''}"


def with_flaky(results: Sequence[SuiteResult], flaky: Iterable[str]) -> list[SuiteResult]:
    """The results with these tests counted as flaky in their suites."""
    names = set(flaky)
    return [
        replace(result, flaky=tuple(t.node_id for t in result.tests if t.node_id in names))
        for result in results
    ]


def exit_status(results: Sequence[SuiteResult], *, all_must_run: bool) -> int:
    """0 where all that ran is good and something ran; a suite left out may count as a failure."""
    left_out = [result for result in results if result.state is SuiteState.NOT_RUN]
    ran = [result for result in results if result.state is not SuiteState.NOT_RUN]
    if not ran or (all_must_run and left_out):
        return 1
    return 0 if all(result.is_good for result in ran) else 1
