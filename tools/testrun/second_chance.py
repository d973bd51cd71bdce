"""A second chance for a few failed tests of real processes, and the evidence of the first failure.

A test that fails and then passes alone is a flake: a defect of the test or of the product until
its cause is known (docs/contributing/flakes.md). It does not fail the run, and it is never passed
over either.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.testrun.results import FAILED, RanTest, SuiteResult, SuiteState
from tools.testrun.suites import Kind, Suite

MOST: Final = 3
LOG_TAIL_LINES: Final = 400
_SLUG_CHARACTERS: Final = 150


@dataclass(frozen=True, slots=True)
class Candidate:
    """A failed test that runs again, and its suite."""

    suite: Suite
    test: RanTest


def candidates(suites: Iterable[Suite], results: Sequence[SuiteResult]) -> list[Candidate]:
    """The failed tests that run again: none where more failed than a few flakes explain."""
    if sum(test.outcome == FAILED for result in results for test in result.tests) > MOST:
        return []
    by_name = {suite.name: suite for suite in suites}
    return [
        Candidate(by_name[result.name], test)
        for result in results
        if result.state is SuiteState.FAILED and _may_run_again(by_name[result.name])
        for test in result.tests
        if test.outcome == FAILED
    ]


def _may_run_again(suite: Suite) -> bool:
    return suite.kind is Kind.PROCESSES and suite.tests is not None


def slug(node_id: str) -> str:
    """A directory's name for a test."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", node_id).strip("-")[:_SLUG_CHARACTERS]


def keep_evidence(
    candidate: Candidate, directory: Path, *, root: Path, log: Path, about: Mapping[str, Any]
) -> None:
    """Write what is known of the first failure, before the second run overwrites any of it."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    test = candidate.test
    facts = {
        "test": test.node_id,
        "suite": candidate.suite.name,
        "phases": test.phases,
        "failures": [{"phase": f.phase, "at": f.at, "load": f.load} for f in test.failures],
        **about,
    }
    _write(directory / "about.json", json.dumps(facts, indent=1) + "\n")
    _write(
        directory / "failure.txt", "\n\n".join(f"{f.phase}\n{f.text}" for f in test.failures) + "\n"
    )
    sections = [section for failure in test.failures for section in failure.sections]
    _write(
        directory / "output.txt",
        "\n".join(f"----- {title} -----\n{text}" for title, text in sections) + "\n",
    )
    if log.exists():
        lines = log.read_text("utf-8", errors="replace").splitlines()
        _write(directory / "suite-log-tail.txt", "\n".join(lines[-LOG_TAIL_LINES:]) + "\n")
    own = root / candidate.suite.evidence / test.node_id.rpartition("::")[2].replace("/", "-")
    if candidate.suite.evidence and own.is_dir():
        shutil.copytree(own, directory / "evidence")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def notice(flaky: Sequence[tuple[str, Path]]) -> str:
    """What stands at the very end of a run with flakes."""
    lines = []
    for node_id, directory in flaky:
        lines += [
            f"FLAKY  {node_id}",
            f"       failed, then passed alone; the first failure is in {directory}",
        ]
    if flaky:
        page = "docs/contributing/flakes.md"
        lines.append(f"A flake is a defect until its cause is known: add it to {page}.")
    return "".join(f"{line}\n" for line in lines)
