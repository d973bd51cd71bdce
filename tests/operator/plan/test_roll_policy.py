"""Roll policies: approval by token, windows in UTC."""

from __future__ import annotations

import pytest

from barnabas_operator.api.rolls import Roll, RollPolicyType, RollWindow, Weekday
from barnabas_operator.names import FORCE_ROLL, PAUSE_ROLL
from barnabas_operator.plan.roll_policy import RollRequests, is_open, objection, soaking

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
    asked = Roll(policy=RollPolicyType.ON_APPROVAL)
    closed = Roll(policy=RollPolicyType.WINDOW, window=NIGHT)
    now = "2026-01-05T00:00:00Z"

    def objects(roll: Roll, requests: RollRequests) -> str:
        return objection(roll, requests, token="abc", now=now)

    assert "approve-roll=abc" in objects(asked, RollRequests())
    assert objects(asked, RollRequests(approved="old"))
    assert objects(asked, RollRequests(approved="abc")) == ""
    assert objects(Roll(), RollRequests()) == ""
    assert "window" in objects(closed, RollRequests())


def test_a_pause_holds_whatever_else_is_said_and_force_overrules_the_policy() -> None:
    """Force names its roll, too."""
    closed = Roll(policy=RollPolicyType.WINDOW, window=NIGHT)
    forced = RollRequests.of({FORCE_ROLL: "abc"})
    assert objection(closed, forced, token="abc", now="2026-01-05T00:00:00Z") == ""
    assert objection(closed, forced, token="def", now="2026-01-05T00:00:00Z")
    paused = RollRequests.of({FORCE_ROLL: "abc", PAUSE_ROLL: "yes"})
    assert "is paused" in objection(Roll(), paused, token="abc", now="")
    assert not RollRequests.of({PAUSE_ROLL: "false"}).paused


def test_the_last_pod_is_watched_for_a_while() -> None:
    """Until it has been ready for that long."""
    times = ["2026-01-05T00:00:00Z", "2026-01-05T00:01:00Z", ""]
    assert soaking(times, 60, "2026-01-05T00:01:59Z") == times[1]
    assert soaking(times, 60, "2026-01-05T00:02:00Z") == ""
    assert soaking(times, 0, "2026-01-05T00:01:00Z") == ""
    assert soaking([], 60, "2026-01-05T00:01:00Z") == ""
