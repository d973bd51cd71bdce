"""What `python -m e2e.times` writes into the document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from e2e import times

FIGURES = times.Figures(
    ready_s=[31.0, 40.4, 35.2],
    roll_s=[50.0, 41.0, 45.0],
    loads=[2.2, 9.0],
    memory={"barnabas-operator-7-x": 80 << 20, "three-broker-0": 50 << 20},
)


def test_the_part_has_medians_bars_and_pods() -> None:
    """Each measure beside what it is to be at most, with day and load."""
    part = times.report(FIGURES, "2026-11-28")
    assert "2026-11-28" in part
    assert "load 2 to 9" in part
    assert "| `kubectl apply` to Ready, seconds | 35 | 31 to 40 | 45 |" in part
    assert "| a roll of three idle brokers, seconds | 45 | 41 to 50 | 60 |" in part
    assert "| memory of the operator, MiB | 80 | | 96 |" in part
    assert "3 brokers, MiB | 130 | | 1,229 |" in part
    assert "| `barnabas-operator` | 80 |" in part


def test_only_the_part_between_the_marks_is_replaced() -> None:
    """Twice gives the same document as once; the document has both marks."""
    part = times.report(FIGURES, "2026-11-28")
    document = times.DOCUMENT.read_text("utf-8")
    before, after = document.split(times.BEGIN)[0], document.split(times.END)[1]
    once = times.written(document, part)
    assert once == before + part + after
    assert times.written(once, part) == once


@pytest.mark.parametrize(
    "above",
    [
        {"ready_s": [44.0, 46.0, 46.0]},
        {"roll_s": [61.0]},
        {"memory": {"barnabas-operator-7-x": 97 << 20}},
        {"memory": {"three-broker-0": 1230 << 20}},
    ],
)
def test_a_figure_above_its_bar_is_a_failure(above: dict[str, Any]) -> None:
    """The command's exit status says so; one slow run of three is none."""
    assert replace(FIGURES, **above).missed
    assert not replace(FIGURES, ready_s=[30.0, 30.0, 90.0]).missed
