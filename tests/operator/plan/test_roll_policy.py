"""Roll policies: approval by token, windows in UTC."""

from __future__ import annotations

import pytest

from barnabas_operator.api.clusters import RollPolicy, RollPolicyType, RollWindow, Weekday
from barnabas_operator.plan.roll_policy import is_open, objection

NIGHT = RollWindow(days=(Weekday.SATURDAY,), start="22:30", hours=4)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-01-03T22:29:59Z", False),
        ("2026-01-03T22:30:00Z", True),
        ("2026-01-04T02:29:59Z", True),
        ("2026-01-04T02:30:00Z", False),
        ("2026-01-04T23:00:00Z", False),
        ("", False),
    ],
)
def test_a_window_goes_on_past_midnight(now: str, expected: bool) -> None:
    """The day is that of its start."""
    assert is_open(NIGHT, now) is expected


def test_a_window_without_days_opens_every_day() -> None:
    """And one that lasts a day is always open."""
    assert is_open(RollWindow(start="12:00", hours=24), "2026-01-06T11:59:00Z")


def test_a_roll_is_approved_by_its_token() -> None:
    """An approval of an earlier roll approves nothing now."""
    policy = RollPolicy(type=RollPolicyType.ON_APPROVAL)
    assert "approve-roll=abc" in objection(policy, approved="", token="abc", now="")
    assert objection(policy, approved="old", token="abc", now="")
    assert objection(policy, approved="abc", token="abc", now="") == ""
    assert objection(RollPolicy(), approved="", token="abc", now="") == ""
    closed = RollPolicy(type=RollPolicyType.WINDOW, window=NIGHT)
    assert "window" in objection(closed, approved="", token="abc", now="2026-01-05T00:00:00Z")
