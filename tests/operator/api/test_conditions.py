"""Conditions, as kstatus reads them."""

from __future__ import annotations

import pytest

from barnabas_operator.api.conditions import Verdict, conditions, is_ready

READY = Verdict(ready=True, reason="Ready")
WORKING = Verdict(ready=False, reason="Starting", settled=False)
STUCK = Verdict(ready=False, reason="Refused", message="no", stalled=True)


def _reported(verdict: Verdict) -> dict[str, str]:
    reported = conditions(verdict, generation=3, previous=(), now="t1")
    return {each.type: each.status for each in reported}


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (READY, {"Ready": "True"}),
        (WORKING, {"Ready": "False", "Reconciling": "True"}),
        (STUCK, {"Ready": "False", "Stalled": "True"}),
        (
            Verdict(ready=True, reason="Ready", warnings=("w",)),
            {"Ready": "True", "Warning": "True"},
        ),
    ],
)
def test_verdicts(verdict: Verdict, expected: dict[str, str]) -> None:
    """Ready is always there; Reconciling and Stalled only while they hold, never both."""
    assert _reported(verdict) == expected


def test_time_is_that_of_the_last_change() -> None:
    """Another reason with the same status keeps the time; another status has a new one."""
    first = conditions(WORKING, generation=1, previous=(), now="t1")
    again = conditions(STUCK, generation=1, previous=first, now="t2")
    assert again[0].last_transition_time == "t1"
    ready = conditions(READY, generation=1, previous=again, now="t3")
    assert ready[0].last_transition_time == "t3"
    assert (is_ready(again), is_ready(ready)) == (False, True)


def test_a_long_message_is_cut() -> None:
    """What an API server would refuse for its length is not sent."""
    verdict = Verdict(ready=False, reason="R", message="x" * 5000)
    assert len(conditions(verdict, generation=1, previous=(), now="t")[0].message) == 4096
