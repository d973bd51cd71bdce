"""The outcome on paper: a Markdown table of medians and ranges, and every raw run as JSON."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.bars import BARS
from benchmarks.limits import Limit
from benchmarks.model import Metric, Run

QUICK: Final = "A quick run: amounts are small and brokers cold, the figures say nothing."
EXPLANATION: Final = (
    "Median (lowest to highest) of the counted runs. CPU is the broker process's user and system "
    "time, all threads; MB are 10⁶ bytes. Apache Kafka's ZooKeeper is a process of its own and "
    "counts in neither CPU nor memory."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Everything a benchmark found out."""

    command: str
    quick: bool
    began: str
    ended: str
    targets: Sequence[tuple[str, str]]
    descriptions: dict[str, dict[str, str]]
    machine: dict[str, str]
    limits: Sequence[Limit]
    runs: Sequence[Run]


@dataclass(frozen=True, slots=True)
class Line:
    """One row and metric over all counted runs, per target."""

    row: str
    metric: Metric
    values: dict[str, list[float]]

    def median(self, target: str) -> float | None:
        """The median on `target`, if it was measured there."""
        values = self.values.get(target)
        return median(values) if values else None

    def ratio(self, target: str, baseline: str) -> float | None:
        """Median on `target` over median on `baseline`."""
        above, below = self.median(target), self.median(baseline)
        return above / below if above is not None and below else None


def machine_description(directory: Path) -> dict[str, str]:
    """What the figures were measured on."""
    cpus = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory_kib = int(Path("/proc/meminfo").read_text().split(None, 2)[1])
    return {
        "processors": f"{len(cpus)} x {cpus[0] if cpus else platform.machine()}",
        "memory": f"{memory_kib >> 20} GiB",
        "kernel": platform.release(),
        "clients on python": platform.python_version(),
        "file system": _file_system(directory),
    }


def lines(runs: Sequence[Run]) -> list[Line]:
    """Counted runs gathered by row and metric, in the order they first came."""
    gathered: dict[tuple[str, Metric], dict[str, list[float]]] = {}
    for run in runs:
        if run.round < 1:
            continue
        for sample in run.samples:
            for metric, value in sample.values.items():
                per_target = gathered.setdefault((sample.row, metric), {})
                per_target.setdefault(run.target, []).append(value)
    return [Line(row, metric, values) for (row, metric), values in gathered.items()]


def markdown(outcome: Outcome) -> str:
    """The report as people read it."""
    names = [name for name, _ in outcome.targets]
    parts = [
        f"# Benchmark of {outcome.began[:10]}",
        f"`{outcome.command}`, {outcome.began} to {outcome.ended}.",
        QUICK if outcome.quick else "",
        _facts("Machine", outcome.machine),
        *(
            _facts(label, outcome.descriptions.get(name, {"state": "did not start"}))
            for name, label in outcome.targets
        ),
        EXPLANATION,
        _table(lines(outcome.runs), outcome.targets, names),
        _interference(outcome.runs),
        _limits_table(outcome.limits),
        _errors(outcome.runs),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def write(outcome: Outcome, directory: Path) -> None:
    """README.md and runs.json in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "README.md").write_text(markdown(outcome))
    raw = {
        **asdict(outcome),
        "runs": [asdict(run) for run in outcome.runs],
    }
    (directory / "runs.json").write_text(json.dumps(raw, indent=1, ensure_ascii=False) + "\n")


class Page:
    """A page of figures: it says with which command, when and on which machine they were taken."""

    def __init__(self, title: str, module: str, directory: Path) -> None:
        """Begins now, in a directory of the file system that is measured on."""
        self._title = title
        self._command = shlex.join(["python", "-m", module, *sys.argv[1:]])
        self._began = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
        self._machine = ", ".join(f"{it} {of}" for it, of in machine_description(directory).items())

    def text(self, *parts: str) -> str:
        """All of it, in Markdown, ending now."""
        ended = f"{datetime.now(UTC):%H:%M:%S}"
        load = " ".join(f"{it:.0f}" for it in os.getloadavg())
        heads = (
            f"# {self._title}\n",
            f"`{self._command}`, {self._began} UTC to {ended} UTC.\n",
            f"**Machine**: {self._machine}; load average at the end {load}.\n",
        )
        return "\n".join([*heads, *parts])

    def write(self, output: Path | None, *parts: str) -> None:
        """README.md in `output`, None for none: an interrupt loses only the run under way."""
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            (output / "README.md").write_text(self.text(*parts))


def runs_cell(values: Sequence[float]) -> str:
    """The median of some runs, with the lowest and the highest; empty without any."""
    if not values:
        return ""
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def number(value: float) -> str:
    """Three significant digits and thousands separators: 0.0312, 4.57, 187, 23,600."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".")


def _table(table: Sequence[Line], targets: Sequence[tuple[str, str]], names: list[str]) -> str:
    compared = names[1:] if len(names) > 1 else []
    heads = ["Case", "Measure", *(label for _, label in targets)]
    heads += ["Ratio" if len(compared) == 1 else f"Ratio {name}" for name in compared]
    heads += ["Bar", ""] if compared else []
    rows = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    previous = None
    for line in table:
        cells = [line.row if line.row != previous else "", line.metric.value]
        previous = line.row
        cells += [_spread(line.values.get(name, [])) for name in names]
        for name in compared:
            ratio = line.ratio(name, names[0])
            cells.append(f"{ratio:.2f}x" if ratio is not None else "—")
        if compared:
            cells += _verdict(line, compared[-1], names[0])
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _verdict(line: Line, target: str, baseline: str) -> list[str]:
    bar = BARS.get(line.row, {}).get(line.metric)
    value, ratio = line.median(target), line.ratio(target, baseline)
    if bar is None or not target.startswith("barnabas"):
        return ["", ""]
    if value is None or (ratio is None and not bar.absolute):
        return [str(bar), "not measured"]
    return [str(bar), "met" if bar.met(value, ratio or 0.0) else "**missed**"]


def _spread(values: list[float]) -> str:
    if not values:
        return "—"
    if len(values) == 1:
        return number(values[0])
    return f"{number(median(values))} ({number(min(values))}–{number(max(values))})"


def _facts(title: str, facts: dict[str, str]) -> str:
    return f"**{title}**: " + ", ".join(f"{name} {value}" for name, value in facts.items()) + "."


def _limits_table(limits: Sequence[Limit]) -> str:
    if not limits:
        return ""
    rows = ["| Physical limit, measured in the same run | MB/s | CPU ms/MB |", "|---|---|---|"]
    rows += [
        f"| {limit.name} | {number(limit.mb_per_s)} | {number(limit.cpu_ms_per_mb)} |"
        for limit in limits
    ]
    return "\n".join(rows)


def _interference(runs: Sequence[Run]) -> str:
    """How busy other processes kept the machine; figures of a busy machine are only indicative."""
    others = [
        float(sample.detail["other_cores"])
        for run in runs
        for sample in run.samples
        if run.round > 0 and "other_cores" in sample.detail
    ]
    if not others:
        return ""
    return (
        f"Cores used meanwhile by processes that are neither broker nor client: median "
        f"{median(others):.2f}, at most {max(others):.2f}. Above about 0.3, read wall-clock "
        "figures as indicative only; CPU figures hold."
    )


def _errors(runs: Sequence[Run]) -> str:
    failed = [run for run in runs if run.error]
    if not failed:
        return ""
    rows = ["## Runs that failed", ""]
    for run in failed:
        reason = " ".join(str(run.error).split())[:500]
        rows.append(f"- {run.case}, {run.target}, round {run.round}: {reason}")
    return "\n".join(rows)


def _file_system(directory: Path) -> str:
    """Type of the file system under `directory`: that of the longest mount point above it."""
    best = ("", "unknown")
    resolved = str(directory.resolve())
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, *_ = line.split()
        inside = resolved == mount or resolved.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]
