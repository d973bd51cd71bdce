"""When pods that serve may be replaced: at once, on approval, or in a weekly window in UTC."""

from __future__ import annotations

from datetime import datetime, timedelta

from barnabas_operator.api.clusters import RollPolicy, RollPolicyType, RollWindow, Weekday
from barnabas_operator.names import APPROVE_ROLL


def objection(policy: RollPolicy, *, approved: str, token: str, now: str) -> str:
    """Why no pod is replaced now; empty if it may be. `token` names the roll that is due."""
    if policy.type is RollPolicyType.ON_APPROVAL and approved != token:
        return f"it waits for approval: annotate the KafkaCluster with {APPROVE_ROLL}={token}"
    if policy.type is RollPolicyType.WINDOW and not is_open(policy.window, now):
        return "it waits for the window of spec.rollPolicy"
    return ""


def is_open(window: RollWindow | None, now: str) -> bool:
    """Whether a moment (RFC 3339, UTC) is in the window, which may go on past midnight."""
    if window is None or not now:
        return False
    moment = datetime.fromisoformat(now)
    hour, minute = map(int, window.start.split(":"))
    days = tuple(Weekday)
    for back in (0, 1):
        day = (moment - timedelta(days=back)).replace(
            hour=hour, minute=minute, second=0, microsecond=0
        )
        within = day <= moment < day + timedelta(hours=window.hours)
        if within and (not window.days or days[day.weekday()] in window.days):
            return True
    return False
