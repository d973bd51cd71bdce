"""When pods that serve may be replaced: at once, on approval, or in a weekly window in UTC.

Annotations of the KafkaCluster approve, pause or force a roll. Approval and force name it by its
token, so that neither says anything about the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from barnabas_operator.api.rolls import Roll, RollPolicyType, RollWindow, Weekday
from barnabas_operator.names import APPROVE_ROLL, FORCE_ROLL, PAUSE_ROLL


@dataclass(frozen=True, slots=True, kw_only=True)
class RollRequests:
    """What the annotations of a KafkaCluster ask for."""

    approved: str = ""
    forced: str = ""
    paused: bool = False

    @classmethod
    def of(cls, annotations: Mapping[str, str]) -> RollRequests:
        """From the annotations; a misspelt value of a pause pauses."""
        return cls(
            approved=annotations.get(APPROVE_ROLL, ""),
            forced=annotations.get(FORCE_ROLL, ""),
            paused=annotations.get(PAUSE_ROLL, "false") != "false",
        )


def objection(roll: Roll, requests: RollRequests, *, token: str, now: str) -> str:
    """Why no pod is replaced now; empty if it may be. `token` names the roll that is due."""
    if requests.paused:
        return f"it is paused: remove the annotation {PAUSE_ROLL} from the KafkaCluster"
    if requests.forced == token:
        return ""
    if roll.policy is RollPolicyType.ON_APPROVAL and requests.approved != token:
        return f"it waits for approval: annotate the KafkaCluster with {APPROVE_ROLL}={token}"
    if roll.policy is RollPolicyType.WINDOW and not is_open(roll.window, now):
        return "it waits for the window of spec.roll"
    return ""


def soaking(ready_since: Iterable[str], soak_s: int, now: str) -> str:
    """Since when the last of these pods is ready, if that is not long enough; else empty."""
    latest = max(ready_since, default="")
    if not (soak_s and latest and now):
        return ""
    passed = datetime.fromisoformat(now) - datetime.fromisoformat(latest)
    return latest if passed < timedelta(seconds=soak_s) else ""


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
