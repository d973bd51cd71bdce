"""The record of the last full run, `docs/contributing/test-run.json`, and the table made of it.

The table stands in docs/contributing/testing.md.
A suite's figures are replaced when `make test RECORD=1` runs it and every test passes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tools.testrun.report import slowest_files, slowest_tests
from tools.testrun.results import PASSED, SuiteResult
from tools.testrun.suites import SUITES, Kind, Suite

ROOT: Final = Path(__file__).resolve().parents[2]
FILE: Final = "docs/contributing/test-run.json"
DOCUMENT: Final = "docs/contributing/testing.md"
KEPT: Final = 40
BEGIN: Final = "<!-- Generated from test-run.json and tools/testrun/suites.py by `make gen`. -->"
END: Final = "<!-- End of the generated part. -->"

Record = Mapping[str, Any]


def read(root: Path) -> Record:
    """The committed record, empty where there is none."""
    path = root / FILE
    if not path.exists():
        return {"suites": {}, "tests": [], "files": []}
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    return record


def write(root: Path, record: Record) -> None:
    """Write the record, a line for each suite, test and file, and the document's table of it."""
    blocks = []
    suites = (f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in record["suites"].items())
    blocks.append('"suites": {\n' + ",\n".join(suites) + "\n }")
    for part in ("files", "tests"):
        rows = ",\n".join(f"  {json.dumps(row)}" for row in record[part])
        blocks.append(f'"{part}": [\n{rows}\n ]' if rows else f'"{part}": []')
    text = "{\n " + ",\n ".join(blocks) + "\n}\n"
    (root / FILE).write_text(text, encoding="utf-8")
    (root / DOCUMENT).write_text(document(root), encoding="utf-8")


def expected_minutes(record: Record) -> dict[str, float]:
    """How long each suite took, by name."""
    return {name: float(suite["minutes"]) for name, suite in record["suites"].items()}


def merged(record: Record, results: Sequence[SuiteResult], run: Mapping[str, Any]) -> Record:
    """The record with the figures of the suites in which every test passed, and of these alone."""
    good = [result for result in results if result.is_good and not result.flaky]
    names = {result.name for result in good}
    suites = dict(record["suites"])
    about = {key: run[key] for key in ("date", "commit", "cores", "python")}
    for result in good:
        minutes = round(result.seconds / 60, 1)
        suites[result.name] = {"minutes": minutes, "passed": result.count(PASSED), **about}
    order = [suite.name for suite in SUITES]
    suites = dict(
        sorted(suites.items(), key=lambda item: (item[0] not in order, *_at(item, order)))
    )
    parts = {"files": slowest_files(good, KEPT), "tests": slowest_tests(good, KEPT)}
    rows = {}
    for part, times in parts.items():
        new = [[round(seconds, 1), suite, name] for seconds, suite, name in times]
        old = [row for row in record[part] if row[1] not in names]
        rows[part] = sorted(new + old, key=lambda row: (-row[0], row[2]))[:KEPT]
    return {"suites": suites, **rows}


def _at(item: tuple[str, Any], order: Sequence[str]) -> tuple[int, str]:
    return (order.index(item[0]) if item[0] in order else 0, item[0])


def table(suites: Sequence[Suite], record: Record) -> str:
    """The suites as a table in Markdown: needs, minutes as planned, as measured, at most."""
    head = "| Suite | Shows | Needs | Second chance | Budget | Measured | Limit |"
    lines = [head, "|" + "---|" * 7]
    expected = expected_minutes(record)
    parts = {part for suite in suites for part in suite.covers}
    for suite in suites:
        needs = ", ".join(suite.needs) or "Python"
        chance = "yes" if suite.kind is Kind.PROCESSES else "never"
        minutes = f"{expected[suite.name]:.1f}" if suite.name in expected else ""
        shows = suite.shows + (" (part of the next)" if suite.name in parts else "")
        lines.append(
            f"| `{suite.name}` | {shows} | {needs} | {chance}"
            f" | {suite.budget_minutes:g} | {minutes} | {suite.limit_minutes:g} |"
        )
    whole = [suite for suite in suites if suite.name not in parts]
    budget = sum(suite.budget_minutes for suite in whole)
    measured = sum(expected.get(suite.name, 0.0) for suite in whole)
    lines.append(f"| **All** | | | | **{budget:g}** | **{measured:.1f}** | |")
    return "\n".join(lines)


def with_table(text: str, generated: str) -> str:
    """A document with the part between the markers replaced."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no part between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{generated}\n\n{END}{after}"


def document(root: Path) -> str:
    """docs/contributing/testing.md as the record wants it."""
    return with_table((root / DOCUMENT).read_text(encoding="utf-8"), table(SUITES, read(root)))
