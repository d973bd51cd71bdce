"""Quantities and durations."""

from __future__ import annotations

import pytest

from barnabas_operator.api.amounts import (
    format_bytes,
    parse_duration_ms,
    show_bytes,
    stored_bytes,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1Gi", 2**30),
        ("1.5Gi", 3 * 2**29),
        ("500M", 500_000_000),
        ("7", 7),
        ("2Ti", 2**41),
        ("1181116006400m", 1_181_116_007),
        ("1e3", 1000),
        ("12E-1", 2),
        ("1E", 10**18),
        ("2Ei", 2**61),
        ("5n", 1),
        (".5", 1),
        ("many", 0),
        ("-1Gi", 0),
    ],
)
def test_quantities_as_the_api_server_stores_them(text: str, count: int) -> None:
    """Claims may be another's, and the API server has forms of its own."""
    assert stored_bytes(text) == count


@pytest.mark.parametrize(
    ("text", "ms"), [("5s", 5000), ("7d", 604_800_000), ("1h30m", 5_400_000), ("250ms", 250)]
)
def test_durations(text: str, ms: int) -> None:
    """Units may follow each other."""
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "1w", "5s!"])
def test_no_durations(text: str) -> None:
    """A number without unit is no duration."""
    with pytest.raises(ValueError, match="such as 5s"):
        parse_duration_ms(text)


def test_a_claim_is_never_smaller_than_reckoned() -> None:
    """Rounded up, to what a person can read."""
    for count in (1, 2**20, 2**20 + 1, 10 * 2**30 - 1, 10 * 2**30 + 1, 10**13):
        assert stored_bytes(format_bytes(count)) >= count
    assert (format_bytes(2**20 + 1), format_bytes(10 * 2**30)) == ("2Mi", "10Gi")


def test_bytes_for_people() -> None:
    """One decimal, the largest unit that fits."""
    shown = [show_bytes(n) for n in (5, 1536, 2**30, 3 * 2**40)]
    assert shown == ["5 B", "1.5 KiB", "1.0 GiB", "3.0 TiB"]
