"""Where a group's offsets go."""

import pytest

from barnabas_broker.cli.groups.strategies import (
    Bounds,
    Target,
    clamped,
    moved,
    parse_datetime,
    parse_duration,
    shifted,
)

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


def test_what_could_not_be_had_is_told() -> None:
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
def test_what_is_no_duration(text: str) -> None:
    """It is refused with what it was."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_moments_are_utc_unless_they_say_otherwise() -> None:
    """As Kafka's tool reads them."""
    assert parse_datetime("2017-08-04T00:00:00.000") == 1_501_804_800_000
    assert parse_datetime("2017-08-04T02:00:00+02:00") == 1_501_804_800_000
