"""What the runner prints: a line at the begin and the end of each suite, and tables at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tools.testrun.results import FAILED, PASSED, SKIPPED, SuiteResult, SuiteState
from tools.testrun.suites import Suite

Row = tuple[str, ...]
NONE = "–"
_HEAD: Row = ("suite", "passed", "failed", "flaky", "minutes", "share", "expected", "result")
_LEFT = ("suite", "result", "test", "file")


def begin_line(suite: Suite, position: int, count: int, expected: float | None) -> str:
    """`[2/7] unit: …`, as the suite begins."""
    about = f"about {expected:.1f} min" if expected is not None else "time unknown"
    return (
        f"[{position}/{count}] {suite.name}: {suite.shows}"
        f" ({about}, at most {suite.limit_minutes:g})"
    )


def end_line(result: SuiteResult, position: int, count: int) -> str:
    """`[2/7] unit: 812 passed in 4.1 min`, as the suite ends."""
    counts = [
        f"{result.count(outcome)} {outcome}"
        for outcome in (PASSED, FAILED, SKIPPED)
        if outcome == PASSED or result.count(outcome)
    ]
    reason = f"; {result.reason}" if result.reason else ""
    minutes = f"{result.seconds / 60:.1f} min"
    return f"[{position}/{count}] {result.name}: {', '.join(counts)} in {minutes}{reason}"


def table(results: Sequence[SuiteResult], expected: Mapping[str, float]) -> str:
    """One row for each suite, and their sum."""
    total = sum(result.seconds for result in results)
    rows = [_row(result, total, expected) for result in results]
    ran = [result for result in results if result.state is not SuiteState.NOT_RUN]
    known = [expected[result.name] for result in ran if result.name in expected]
    sums: Row = (
        "total",
        str(sum(result.count(PASSED) for result in ran)),
        str(sum(result.count(FAILED) for result in ran)),
        str(sum(len(result.flaky) for result in ran)),
        f"{total / 60:.1f}",
        "",
        f"{sum(known):.1f}" if known else NONE,
        "",
    )
    return _aligned([_HEAD, *rows, sums], rules=(1, len(rows) + 1))


def _row(result: SuiteResult, total: float, expected: Mapping[str, float]) -> Row:
    if result.state is SuiteState.NOT_RUN:
        return (result.name, *(NONE,) * 6, result.reason)
    awaited = expected.get(result.name)
    return (
        result.name,
        str(result.count(PASSED)),
        str(result.count(FAILED)),
        str(len(result.flaky)),
        f"{result.seconds / 60:.1f}",
        f"{result.seconds / total:.0%}" if total else NONE,
        f"{awaited:.1f}" if awaited is not None else NONE,
        _verdict(result),
    )


def _verdict(result: SuiteResult) -> str:
    words = result.reason or ("FLAKY" if result.is_good and result.flaky else result.state.value)
    skipped = result.count(SKIPPED)
    loud = words if result.is_good else words.replace(result.state.value, _loud(result), 1)
    return f"{loud}, {skipped} skipped" if skipped else loud


def _loud(result: SuiteResult) -> str:
    return result.state.value.upper()


def slowest_tests(results: Sequence[SuiteResult], count: int) -> list[tuple[float, str, str]]:
    """The slowest tests of all suites: seconds, suite, node id."""
    times = [
        (test.seconds, result.name, test.node_id) for result in results for test in result.tests
    ]
    return sorted(times, key=lambda time: (-time[0], time[2]))[:count]


def slowest_files(results: Sequence[SuiteResult], count: int) -> list[tuple[float, str, str]]:
    """The files whose tests take longest together: seconds, suite, file."""
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for result in results:
        for test in result.tests:
            if test.file:
                sums[result.name, test.file] += test.seconds
    times = [(seconds, suite, file) for (suite, file), seconds in sums.items()]
    return sorted(times, key=lambda time: (-time[0], time[2]))[:count]


def slowest(results: Sequence[SuiteResult], count: int) -> str:
    """Where the time goes: the slowest files, then the slowest tests, in seconds."""
    parts = []
    for noun, times in (
        ("file", slowest_files(results, count)),
        ("test", slowest_tests(results, count)),
    ):
        if times:
            rows = [(f"{seconds:.1f}", suite, name) for seconds, suite, name in times]
            title = f"The {len(rows)} slowest {noun}s" if len(rows) > 1 else f"The slowest {noun}"
            parts.append(f"{title}\n{_aligned([('seconds', 'suite', noun), *rows], rules=(1,))}")
    return "\n".join(parts)


def failures(results: Sequence[SuiteResult]) -> str:
    """The tests that failed, by suite; what they said is in the suite's output above."""
    lines = [
        f"FAILED  {result.name}: {test.node_id}" for result in results for test in result.failed
    ]
    return "".join(f"{line}\n" for line in lines)


def _aligned(rows: Sequence[Row], *, rules: Sequence[int]) -> str:
    """Columns as wide as their widest cell, texts to the left and figures to the right."""
    head = rows[0]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = []
    for number, row in enumerate(rows):
        if number in rules:
            lines.append("  ".join("─" * width for width in widths))
        cells = [
            f"{cell:<{width}}" if name in _LEFT else f"{cell:>{width}}"
            for name, cell, width in zip(head, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"
