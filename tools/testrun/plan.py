"""Which suites run here, which do not and why, and how long that takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tools.testrun.requirements import Lack
from tools.testrun.suites import Preparation, Suite


class UnknownSuiteError(ValueError):
    """A name that is no suite's, in words for a user."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The suites of a run in order, and the reasons why others are left out, by name."""

    runs: tuple[Suite, ...]
    lacking: Mapping[str, tuple[Lack, ...]]
    covered: Mapping[str, str]
    """Suites that run as part of another: their name, the other's."""

    @property
    def lacks(self) -> list[Lack]:
        """Everything that is missing, once each."""
        return list(dict.fromkeys(lack for some in self.lacking.values() for lack in some))

    def reason(self, name: str) -> str:
        """Why a suite is left out."""
        if name in self.covered:
            return f"part of {self.covered[name]}"
        return f"not run: needs {', '.join(map(str, self.lacking[name]))}"


def named(text: str) -> list[str]:
    """The names in `SUITE="check, unit"`."""
    return list(dict.fromkeys(filter(None, re.split(r"[\s,]+", text))))


def select(suites: Sequence[Suite], names: Sequence[str]) -> list[Suite]:
    """The named suites in the table's order, all without names; raises UnknownSuiteError."""
    known = [suite.name for suite in suites]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UnknownSuiteError(
            f"unknown suite {', '.join(unknown)}; the suites are {', '.join(known)}"
        )
    return [suite for suite in suites if not names or suite.name in names]


def make_plan(selected: Iterable[Suite], missing: Mapping[str, Lack]) -> Plan:
    """Divide the selected suites by what is missing on this machine."""
    runs = []
    lacking = {}
    for suite in selected:
        lacks = tuple(missing[need] for need in suite.needs if need in missing)
        if lacks:
            lacking[suite.name] = lacks
        else:
            runs.append(suite)
    covered = {part: suite.name for suite in runs for part in suite.covers}
    present = {suite.name for suite in runs}
    return Plan(
        tuple(suite for suite in runs if suite.name not in covered),
        lacking,
        {part: whole for part, whole in covered.items() if part in present},
    )


def preparations(plan: Plan, known: Sequence[Preparation]) -> list[Preparation]:
    """The preparations of a plan's suites, each once, in the order in which they are awaited."""
    by_name = {preparation.name: preparation for preparation in known}
    names = dict.fromkeys(name for suite in plan.runs for name in suite.prepared_by)
    return [by_name[name] for name in names]


def described(plan: Plan, selected: Sequence[Suite], expected: Mapping[str, float]) -> str:
    """The plan as text: a line for each suite, and for each program that is missing."""
    count = f"{len(plan.runs)} of {len(selected)} suites" if plan.runs else "no suite"
    total = sum(expected.get(suite.name, 0.0) for suite in plan.runs)
    unknown = [suite.name for suite in plan.runs if suite.name not in expected]
    about = f"about {total:.0f} minutes" if total else ""
    if unknown:
        about += f"{' and ' if about else ''}what {', '.join(unknown)} takes"
    lines = [f"barnabas: this machine runs {count}{f', {about}' if plan.runs else ''}", ""]
    width = max(len(suite.name) for suite in selected)
    running = {suite.name for suite in plan.runs}
    for suite in selected:
        if suite.name in running:
            known = suite.name in expected
            minutes = f"{expected[suite.name]:4.1f} min" if known else "   ? min"
            lines.append(f"  {suite.name:<{width}}  {minutes}  {suite.shows}")
        else:
            lines.append(f"  {suite.name:<{width}}         –  {_short(plan, suite.name)}")
    if plan.lacks:
        lines += ["", "Missing on this machine:"]
        width = max(len(lack.program) for lack in plan.lacks)
        lines += [f"  {lack.program:<{width}}  {lack.remedy}" for lack in plan.lacks]
    return "\n".join(lines) + "\n"


def _short(plan: Plan, name: str) -> str:
    if name in plan.covered:
        return plan.reason(name)
    return f"not run: needs {', '.join(lack.program for lack in plan.lacking[name])}"
