"""The README is short, and what it claims is what was measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
RESULT: Final = "benchmarks/results/2026-11-23-engine/README.md"
LINES_MAX: Final = 120
# Of what less is better.
COSTS: Final = {"start ms", "VmRSS MiB", "p50 µs", "p99 µs"}


def table(text: str, first: str) -> list[list[str]]:
    """The cells of the table whose heading begins with the word, without heading and rule."""
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows: list[list[str]] = []
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows


def measured() -> dict[tuple[str, str], tuple[str, str]]:
    """Case and measure → the medians of Apache Kafka and of Barnabas."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    case = ""
    for cells in table((ROOT / RESULT).read_text(encoding="utf-8"), "Case"):
        case = cells[0] or case
        apache, ours = (cell.partition(" (")[0] for cell in cells[2:4])
        found[case, cells[1]] = apache, ours
    return found


def test_it_is_read_in_five_minutes() -> None:
    """A reader decides here whether to go on."""
    assert len(README.splitlines()) <= LINES_MAX


def test_its_figures_are_those_of_the_linked_result() -> None:
    """Each of them, the ratio as well; losses are among them and marked."""
    assert f"]({RESULT})" in README
    results = measured()
    losses = 0
    for case, measure, apache, ours, ratio in table(README, "Case"):
        assert results[case, measure] == (apache, ours)
        theirs, own = (float(text.replace(",", "")) for text in (apache, ours))
        better = theirs / own if measure in COSTS else own / theirs
        shown = f"{better:.2f}" if better < 2 else f"{better:.1f}"
        losses += better < 1
        assert ratio == (f"**{shown}**" if better < 1 else shown)
    assert losses >= 3


def test_its_losses_are_the_largest_that_were_measured() -> None:
    """No case is left out because it is bad."""
    named = {(case, measure) for case, measure, *_ in table(README, "Case")}
    for (case, measure), (apache, ours) in measured().items():
        if measure in {"MB/s", "requests/s"}:
            theirs, own = (float(text.replace(",", "")) for text in (apache, ours))
            twin = case.replace("16 MiB", "1 MiB")
            assert own / theirs >= 0.95 or {(case, measure), (twin, measure)} & named, case


def test_its_links_lead_somewhere() -> None:
    """Files of the repository, the picture and the plot included."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    assert "docs/pictures/architecture.svg" in targets
    missing = [each for each in targets if "://" not in each and not (ROOT / each).exists()]
    assert missing == []
