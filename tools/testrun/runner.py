"""Runs a plan: begins with what is missing, ends with one table; keeps all in `.cache/test-run`."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from tools.testrun import busy, processes, record, report, requirements, second_chance
from tools.testrun.checkout_lock import RunInProgressError, checkout_lock
from tools.testrun.plan import Plan, UnknownSuiteError, described, make_plan, preparations, select
from tools.testrun.preparations import Preparations
from tools.testrun.processes import Ended, StoppedError, Surroundings
from tools.testrun.requirements import Lack
from tools.testrun.results import (
    FAILED,
    PASSED,
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
from tools.testrun.suites import PREPARATIONS, SUITES, Preparation, Suite, Tests

SLOWEST: Final = 40
USAGE_STATUS: Final = 2


@dataclass(frozen=True, slots=True)
class Machine:
    """What asks this machine for programs, and installs them."""

    missing: Callable[[Iterable[str]], Mapping[str, Lack]] = requirements.missing
    install: Callable[[Iterable[str]], None] = requirements.install


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asks for."""

    names: Sequence[str] = ()
    strict: bool = False
    record: bool = False
    ci: bool = False
    busy: bool = False
    slowest: int = SLOWEST


@dataclass(slots=True)
class Runner:
    """One run of the suites, from the plan to the exit status."""

    around: Surroundings
    options: Options
    out: TextIO
    suites: Sequence[Suite] = SUITES
    known_preparations: Sequence[Preparation] = PREPARATIONS
    machine: Machine = field(default_factory=Machine)
    results: list[SuiteResult] = field(default_factory=list)
    expected: Mapping[str, float] = field(default_factory=dict)
    minutes: float = 0.0
    busy_share: float = 0.0

    @property
    def directory(self) -> Path:
        """Where everything about the run is kept."""
        return self.around.root / ".cache" / "test-run"

    def run(self) -> int:
        """Run what this machine can; returns the exit status."""
        try:
            selected = select(self.suites, self.options.names)
        except UnknownSuiteError as error:
            self._say(f"barnabas: {error}")
            return USAGE_STATUS
        needs = [need for suite in selected for need in suite.needs]
        self.machine.install(needs)
        plan = make_plan(selected, self.machine.missing(needs))
        self.expected = record.expected_minutes(record.read(self.around.root))
        self._say(described(plan, selected, self.expected))
        if plan.lacking and self.options.ci:
            self._say("barnabas: CI=true, and programs are missing: no test was run")
            return 1
        if not plan.runs:
            self._say("barnabas: this machine can run none of the suites")
            return 1
        try:
            with checkout_lock(self.directory):
                return self._run_locked(plan, selected)
        except RunInProgressError as error:
            self._say(f"barnabas: {error}")
            return USAGE_STATUS

    def _run_locked(self, plan: Plan, selected: Sequence[Suite]) -> int:
        """Run the plan and report it; returns the exit status."""
        began = time.monotonic()
        with busy.busy_core() if self.options.busy else nullcontext() as program:
            status = self._run_plan(plan)
            self.busy_share = program.share() if program else 0.0
        self.minutes = (time.monotonic() - began) / 60
        left_out = (
            SuiteResult(suite.name, SuiteState.NOT_RUN, reason=plan.reason(suite.name))
            for suite in selected
            if suite.name in plan.lacking
        )
        self.results += left_out
        self.results.sort(key=lambda result: [s.name for s in selected].index(result.name))
        # A suite that was asked for by name and cannot run is no success.
        status = status or exit_status(self.results, all_must_run=bool(self.options.names))
        return self._conclude(status)

    def _run_plan(self, plan: Plan) -> int:
        """Run the suites and second chances; returns 0, or the status of a run that was ended."""
        prepared = Preparations(
            preparations(plan, self.known_preparations), self.around, self.directory
        )
        try:
            prepared.start()
            for position, suite in enumerate(plan.runs, start=1):
                self._suite(suite, prepared, position, len(plan.runs))
            self._second_chances(plan.runs)
        except StoppedError as stopped:
            begun = {result.name for result in self.results}
            self.results += (
                SuiteResult(suite.name, SuiteState.NOT_RUN, reason=f"not run: {stopped}")
                for suite in plan.runs
                if suite.name not in begun
            )
            return 128 + stopped.number
        finally:
            prepared.stop()
        return 0

    def _suite(self, suite: Suite, prepared: Preparations, position: int, count: int) -> None:
        self._say(report.begin_line(suite, position, count, self.expected.get(suite.name)))
        self._log(suite.name).unlink(missing_ok=True)
        result = self._unprepared(suite, prepared) or (
            self._tests(suite, suite.tests) if suite.tests else self._steps(suite)
        )
        self.results.append(result)
        self._keep(result)
        self._say(report.end_line(result, position, count) + "\n")

    def _unprepared(self, suite: Suite, prepared: Preparations) -> SuiteResult | None:
        """Wait for what prepares the suite; a result where that fails."""
        for name in suite.prepared_by:
            if not prepared.is_over(name):
                self._say(f"waiting for {name} ({prepared.log(name)})")
            ended = prepared.wait(name)
            if ended.status or ended.timed_out:
                how = "timed out" if ended.timed_out else f"failed with status {ended.status}"
                reason = f"crashed: its preparation {name} {how}"
                self._say(f"{prepared.tail(name)}\nbarnabas: {name} {how}; {prepared.log(name)}")
                return SuiteResult(suite.name, SuiteState.CRASHED, reason=reason)
        return None

    def _steps(self, suite: Suite) -> SuiteResult:
        """Run every step, also after one has failed."""
        began = time.monotonic()
        ran: list[RanTest] = []
        for step in suite.steps:
            self._say(f"--- {step.name}")
            left_s = suite.limit_minutes * 60 - (time.monotonic() - began)
            running = Events(tuple(ran), (step.name,))
            ended = self._command(suite, step.command, running, began, left_s)
            outcome = FAILED if ended.status or ended.timed_out else PASSED
            ran.append(RanTest(step.name, "", outcome, {"call": ended.seconds}))
            if ended.timed_out:
                seconds = time.monotonic() - began
                return ended_early(suite.name, SuiteState.TIMED_OUT, running, seconds=seconds)
        failed = any(test.outcome == FAILED for test in ran)
        state = SuiteState.FAILED if failed else SuiteState.PASSED
        return SuiteResult(suite.name, state, time.monotonic() - began, tuple(ran))

    def _tests(self, suite: Suite, tests: Tests) -> SuiteResult:
        path = self.directory / f"{suite.name}.events"
        path.unlink(missing_ok=True)
        began = time.monotonic()
        command = tests.command(self.around.root, path)
        ended = self._command(suite, command, path, began, suite.limit_minutes * 60)
        events = _events(path)
        if ended.timed_out:
            state = SuiteState.TIMED_OUT
            return ended_early(suite.name, state, events, seconds=ended.seconds)
        return judged(suite.name, events, status=ended.status, seconds=ended.seconds)

    def _command(
        self,
        suite: Suite,
        command: Sequence[str],
        so_far: Events | Path,
        began: float,
        limit_s: float,
    ) -> Ended:
        """Run a command of a suite; where the user ends it, its result so far is kept."""
        try:
            return processes.run(command, self.around, self._log(suite.name), limit_s=limit_s)
        except StoppedError:
            events = so_far if isinstance(so_far, Events) else _events(so_far)
            seconds = time.monotonic() - began
            result = ended_early(suite.name, SuiteState.INTERRUPTED, events, seconds=seconds)
            self.results.append(result)
            self._keep(result)
            raise

    def _second_chances(self, suites: Sequence[Suite]) -> None:
        """Run the few failed tests of real processes again, each alone."""
        if self.options.strict:
            return
        flaky = []
        about = self._about()
        for candidate in second_chance.candidates(suites, self.results):
            tests, test = candidate.suite.tests, candidate.test
            assert tests is not None
            self._say(f"second chance: {test.node_id}")
            directory = self.flaky_directory(test.node_id)
            log = self._log(candidate.suite.name)
            root = self.around.root
            second_chance.keep_evidence(candidate, directory, root=root, log=log, about=about)
            path = self.directory / "second-chance.events"
            path.unlink(missing_ok=True)
            ended = processes.run(
                tests.alone(test.node_id, path),
                self.around,
                self.directory / "second-chance.log",
                limit_s=candidate.suite.limit_minutes * 60,
            )
            again = judged("", _events(path), status=ended.status, seconds=ended.seconds)
            if again.state is SuiteState.PASSED and again.count(PASSED):
                flaky.append(test.node_id)
            else:
                shutil.rmtree(directory)
        self.results = with_flaky(self.results, flaky)
        for result in self.results:
            if result.flaky:
                self._keep(result)

    def flaky_directory(self, node_id: str) -> Path:
        """Where the evidence of a test's first failure is kept."""
        return self.around.root / ".cache" / "flaky" / second_chance.slug(node_id)

    def _conclude(self, status: int) -> int:
        about = self._about()
        rows = [
            {
                "suite": result.name,
                "state": result.state.value,
                "passed": result.count(PASSED),
                "failed": result.count(FAILED),
                "flaky": list(result.flaky),
                "minutes": round(result.seconds / 60, 2),
                "reason": result.reason,
            }
            for result in self.results
        ]
        self._write("run.json", {**about, "status": status, "suites": rows})
        flaky = [
            (node_id, self.flaky_directory(node_id).relative_to(self.around.root))
            for result in self.results
            for node_id in result.flaky
        ]
        parts = (
            report.slowest(self.results, self.options.slowest),
            report.failures(self.results),
            report.table(self.results, self.expected),
            self._recorded({**about, "status": status}) if self.options.record else "",
            second_chance.notice(flaky),
        )
        self._say("\n".join(filter(None, parts)))
        return status

    def _recorded(self, about: Mapping[str, Any]) -> str:
        root = self.around.root
        if self.options.busy:
            line = busy.row(self.results, about, minutes=self.minutes, share=self.busy_share)
            busy.append(root, line)
            return f"recorded in {busy.FILE}\n"
        record.write(root, record.merged(record.read(root), self.results, about))
        return f"recorded in {record.FILE} and {record.DOCUMENT}\n"

    def _about(self) -> dict[str, Any]:
        return {
            "date": datetime.now(tz=UTC).isoformat(timespec="seconds"),
            "commit": _commit(self.around.root),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "flags": {
                "suites": list(self.options.names),
                "strict": self.options.strict,
                "ci": self.options.ci,
                "busy": self.options.busy,
            },
        }

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _keep(self, result: SuiteResult) -> None:
        self._write(f"{result.name}.json", result.as_json())

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        text = json.dumps(value, indent=1) + "\n"
        (self.directory / name).write_text(text, encoding="utf-8")

    def _say(self, text: str) -> None:
        self.out.write(text + "\n")
        self.out.flush()


def record_last(root: Path) -> str:
    """Record the last run, which is read from `.cache/test-run`; returns what to print."""
    directory = root / ".cache" / "test-run"
    try:
        run = json.loads((directory / "run.json").read_text(encoding="utf-8"))
        results = [
            result_from_json(json.loads((directory / f"{row['suite']}.json").read_text("utf-8")))
            for row in run["suites"]
            if row["state"] != SuiteState.NOT_RUN.value
        ]
    except FileNotFoundError as error:
        return f"barnabas: no run to record: {error.filename} is missing"
    record.write(root, record.merged(record.read(root), results, run))
    return f"recorded in {record.FILE} and {record.DOCUMENT}"


def _events(path: Path) -> Events:
    if not path.exists():
        return Events()
    return read_events(path.read_text(encoding="utf-8").splitlines())


def _commit(root: Path) -> str:
    """The commit, with a mark where files differ from it, other than those that runs write."""
    written = (f":(exclude){name}" for name in (record.FILE, record.DOCUMENT, busy.FILE))
    commit = _git(root, "rev-parse", "--short", "HEAD")
    differs = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", *written)
    return f"{commit or 'unknown'}{'-dirty' if differs else ''}"


def _git(root: Path, *arguments: str) -> str:
    """What git prints, nothing where it fails or is not installed."""
    command = ["git", *arguments]
    try:
        asked = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return asked.stdout.strip()
