"""The table as a picture: how many times better or worse than the first target, per row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # before pyplot: there is no display where benchmarks run

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.model import Metric
from benchmarks.report import Line, Outcome, lines

COSTS = (
    Metric.CPU_PER_MB,
    Metric.CPU_PER_REQUEST,
    Metric.CPU_PER_HANDSHAKE,
    Metric.MEMORY_PER_CONNECTION,
    Metric.RSS,
)
BETTER, WORSE = "#2a7f62", "#b5483a"


def write(outcome: Outcome, directory: Path) -> bool:
    """Write ratios.svg; False when there are no two targets to compare."""
    if len(outcome.targets) < 2:
        return False
    (baseline, baseline_label), (other, other_label) = outcome.targets[0], outcome.targets[-1]
    panels = [
        ("speed: throughput, latency, start-up", False),
        ("cost: broker CPU and memory", True),
    ]
    all_lines = [line for line in lines(outcome.runs) if line.ratio(other, baseline)]
    chosen = [[line for line in all_lines if _is_cost(line) == cost] for _, cost in panels]
    height = 1.5 + 0.28 * max((len(part) for part in chosen), default=1)
    figure, axes = plt.subplots(1, 2, figsize=(18, height), layout="constrained")
    for axis, (title, _), part in zip(axes, panels, chosen, strict=True):
        _panel(axis, part, (other, baseline), title)
    figure.suptitle(f"{other_label} compared with {baseline_label}, {outcome.began[:10]}")
    figure.savefig(directory / "ratios.svg")
    plt.close(figure)
    return True


def _panel(axis: Axes, part: Sequence[Line], pair: tuple[str, str], title: str) -> None:
    """Bars of how many times better (right of 1) or worse (left), on a logarithmic scale."""
    advantages = [_advantage(line, pair) for line in part]
    names = [f"{line.row} [{line.metric.value}]" for line in part]
    colours = [BETTER if advantage >= 1 else WORSE for advantage in advantages]
    axis.barh(names, [advantage - 1 for advantage in advantages], left=1, color=colours)
    axis.set_xscale("log")
    axis.axvline(1, color="black", linewidth=1)
    axis.invert_yaxis()
    axis.tick_params(axis="y", labelsize=7)
    axis.set_title(title)
    axis.set_xlabel("times better →")
    for position, advantage in enumerate(advantages):
        axis.annotate(f" {advantage:.2f}x", (max(advantage, 1), position), va="center", fontsize=7)


def _advantage(line: Line, pair: tuple[str, str]) -> float:
    ratio = line.ratio(*pair) or 1.0
    return ratio if line.metric.higher_is_better else 1 / ratio


def _is_cost(line: Line) -> bool:
    return line.metric in COSTS
