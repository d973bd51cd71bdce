"""What decides whether the demonstration on kind has succeeded; the rest is run by e2e's parts."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tools import kind_demo

RECORDS = [(b"a", b"1"), (b"a", b"1"), (b"b", b"2")]


def test_the_same_records_in_another_order_are_the_same() -> None:
    """Partitions give no order between them."""
    kind_demo.compare("t", RECORDS[::-1], RECORDS)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (RECORDS[1:], "3 records sent, 2 read, 0 missing"),
        (RECORDS[:2], "3 records sent, 2 read, 1 missing"),
        ([*RECORDS[:2], (b"b", b"3")], "1 missing, 1 that were not sent"),
        ([*RECORDS, RECORDS[0]], "3 records sent, 4 read"),
    ],
)
def test_a_difference_is_counted(found: list[tuple[bytes, bytes]], words: str) -> None:
    """Lost, doubled, changed and strange records are all differences."""
    with pytest.raises(kind_demo.DemoError, match=words):
        kind_demo.compare("t", found, RECORDS)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_step_is_timed_and_ticked_off(quiet: bool) -> None:
    """Each step that ended well is in the report; one that failed is not."""
    report = kind_demo.Report(Console(file=io.StringIO()))
    with report.step("first", quiet=quiet):
        pass
    with pytest.raises(kind_demo.DemoError), report.step("second", quiet=quiet):
        raise kind_demo.DemoError("no")
    assert [title for title, _ in report.steps] == ["first"]
