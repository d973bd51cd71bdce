"""Resets of offsets: scope, strategy and the plan as CSV."""

from typing import Any

import click
import pytest

from barnabas_broker.cli.groups import reset_plan
from barnabas_broker.cli.groups.cluster import Described
from barnabas_broker.cli.groups.resetting import NAMES, Reset, refuse_active
from barnabas_broker.cli.groups.strategies import (
    Bounds,
    Target,
    clamped,
    moved,
    parse_datetime,
    parse_duration,
    shifted,
)

NOTHING: dict[str, Any] = {
    **dict.fromkeys(NAMES), "topics": (), "all_topics": False, "execute": False, "dry_run": False,
}  # fmt: skip


def test_a_strategy_and_a_scope_are_needed() -> None:
    """An offset of 0 and a shift by 0 are strategies; a file has its scope in itself."""
    assert Reset.of(NOTHING | {"to_offset": 0, "all_topics": True}).value == 0
    assert Reset.of(NOTHING | {"shift_by": 0, "topics": ("t",)}).strategy == "shift_by"
    assert Reset.of(NOTHING | {"from_file": "plan.csv"}).strategy == "from_file"


@pytest.mark.parametrize(
    "given",
    [
        {"all_topics": True},
        {"to_offset": 0},
        {"to_offset": 0, "to_latest": True, "all_topics": True},
        {"to_latest": True, "all_topics": True, "topics": ("t",)},
        {"to_latest": True, "all_topics": True, "execute": True, "dry_run": True},
    ],
)
def test_contradicting_options_are_refused(given: dict[str, Any]) -> None:
    """As wrong usage."""
    with pytest.raises(click.UsageError):
        Reset.of(NOTHING | given)


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance"])
def test_a_group_with_members_is_refused(state: str) -> None:
    """With its name and state."""
    group = Described("g", "Classic", state, "", "", ())
    with pytest.raises(click.ClickException, match=f"'g' is inactive.*{state}"):
        refuse_active(group)
    refuse_active(Described("g", "Classic", "Empty", "", "", ()))


ONE = {"g": {("orders", 0): 5, ("orders", 1): 0}}
TWO = {**ONE, "h, and i": {("orders", 0): 7}}


def test_one_group_is_not_named() -> None:
    """As Kafka exports it, and reads it back."""
    text = reset_plan.written(ONE, alone=True)
    assert text == "orders,0,5\norders,1,0\n"
    assert reset_plan.read(text, ("g",)) == ONE


def test_several_groups_are_named_in_each_line() -> None:
    """A name with a comma stands in quotes; the format goes by what was asked, not by what came."""
    text = reset_plan.written(TWO, alone=False)
    assert text == 'g,orders,0,5\ng,orders,1,0\n"h, and i",orders,0,7\n'
    assert reset_plan.read(text, tuple(TWO)) == TWO
    assert reset_plan.written(ONE, alone=False).startswith("g,orders")


def test_an_export_of_apaches_tool_is_read() -> None:
    """It quotes longer names, and ends with empty lines."""
    text = '"a-topic-with-quite-a-long-name",0,3\nalpha,2,0\n\n\n'
    expected = {"g": {("a-topic-with-quite-a-long-name", 0): 3, ("alpha", 2): 0}}
    assert reset_plan.read(text, ("g",)) == expected


@pytest.mark.parametrize(
    "text", ["orders", "orders,x,5", "orders,0,5\ng,orders,0,5", "a,b,c,1,2", "orders,0,"]
)
def test_a_line_that_is_no_plan_is_named(text: str) -> None:
    """Nothing is read of such a file."""
    with pytest.raises(ValueError, match="line"):
        reset_plan.read(text, ("g",))


def test_a_plan_without_groups_is_for_one_group() -> None:
    """For which of two it would be, nobody knows."""
    with pytest.raises(ValueError, match="one group only"):
        reset_plan.read("orders,0,5", ("g", "h"))


FIRST, SECOND = ("t", 0), ("t", 1)


@pytest.mark.parametrize(("offset", "begins"), [(0, 10), (10, 10), (15, 15), (20, 20), (99, 20)])
def test_an_offset_outside_of_the_log_becomes_its_nearest_end(offset: int, begins: int) -> None:
    """As Kafka's tool does, with a warning."""
    assert Bounds(10, 20).clamp(offset) == begins


def test_shifting_keeps_within_the_log() -> None:
    """Both ways."""
    bounds = {FIRST: Bounds(5, 20), SECOND: Bounds(0, 3)}
    current = {FIRST: 7, SECOND: 2}
    assert shifted(current, -4, bounds) == {FIRST: Target(5, 3), SECOND: Target(0, -2)}
    assert shifted(current, 4, bounds) == {FIRST: Target(11, 11), SECOND: Target(3, 6)}


def test_shifting_needs_an_offset() -> None:
    """A partition the group never committed is named."""
    with pytest.raises(ValueError, match="t-1"):
        shifted({FIRST: 7}, 1, {FIRST: Bounds(0, 9), SECOND: Bounds(0, 9)})


def test_unavailable_offsets_are_reported() -> None:
    """One sentence for each partition that goes on elsewhere than it was to."""
    bounds = {FIRST: Bounds(5, 20), SECOND: Bounds(0, 3), ("u", 0): Bounds(0, 9)}
    targets = clamped({FIRST: 1, SECOND: 8, ("u", 0): 9}, bounds)
    below, above = moved(targets)
    assert below == "t-0 begins after 1: 5, its first offset, is taken"
    assert above == "t-1 ends before 8: 3, its end, is taken"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT0H5M0S", 300_000),
        ("P1D", 86_400_000),
        ("P1DT1H", 90_000_000),
        ("pt0.5s", 500),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    """As ISO 8601 writes them."""
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "5M", "P1Y", "P1DT"])
def test_invalid_durations_are_refused(text: str) -> None:
    """It is refused with what it was."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_moments_are_utc_unless_they_say_otherwise() -> None:
    """As Kafka's tool reads them."""
    assert parse_datetime("2017-08-04T00:00:00.000") == 1_501_804_800_000
    assert parse_datetime("2017-08-04T02:00:00+02:00") == 1_501_804_800_000
