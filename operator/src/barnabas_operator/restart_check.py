"""What a broker's admin port answers before and during a roll.

`/restart` says whether a restart puts a partition at risk, `/caught-up` whether its replicas are in
sync, `/recovery` how far log recovery has come. Whatever is not a clear yes is a no. Clusters keep
their broker images when the operator is upgraded, so the first two are asked for under the paths
that older brokers answer too; the names since are `/restart-check` and `/in-sync`.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas_operator.answers import get_json

TIMEOUT_S: Final = 10.0
# Progress is asked of brokers that are not ready: their nodes may be gone and never answer.
RECOVERY_TIMEOUT_S: Final = 2.0
NAMED: Final = 3
# Of what a broker says, in a condition.
LONGEST: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """Yes or no, and the reason for a no."""

    ok: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminAccess:
    """Credentials for admin ports, and the CAs to trust over HTTPS."""

    token: str = field(default="", repr=False)
    """Bearer token; none where it is empty."""
    tls: ssl.SSLContext | None = None
    """With the authority of the cluster; None trusts those of the machine."""


NO_ACCESS: Final = AdminAccess()
"""For admin ports that answer every client."""


def restart_check(admin_url: str, access: AdminAccess = NO_ACCESS) -> CheckResult:
    """Whether this broker can restart without a partition at risk."""
    answer = _get(f"{admin_url}/restart", access)
    if not isinstance(answer, Mapping):
        return CheckResult(ok=False, reason="GET /restart: no answer")
    if answer.get("mayRestart") is True:
        return CheckResult(ok=True)
    try:
        risk = answer["atRisk"]
        named, count = risk["partitions"], int(risk["count"])
        texts = [
            f"{each['topic']}-{each['partition']} has {each['reason']}" for each in named[:NAMED]
        ]
    except (KeyError, TypeError, ValueError, IndexError):
        return CheckResult(ok=False, reason="GET /restart: not an answer of a broker")
    more = f" and {count - len(texts)} more" if count > len(texts) else ""
    reason = f"{'; '.join(texts)[:LONGEST]}{more}"
    return CheckResult(ok=False, reason=reason or "GET /restart: no")


def in_sync(admin_url: str, access: AdminAccess = NO_ACCESS) -> CheckResult:
    """Whether every replica of this broker is in sync."""
    answer = _get(f"{admin_url}/caught-up", access)
    if not isinstance(answer, Mapping):
        return CheckResult(ok=False, reason="GET /caught-up: no answer")
    if answer.get("caughtUp") is True:
        return CheckResult(ok=True)
    percent = str(answer.get("percent"))[:LONGEST]
    return CheckResult(ok=False, reason=f"{percent} % of its replicas are in sync")


def recovery(admin_url: str, access: AdminAccess = NO_ACCESS) -> str:
    """How far log recovery has come, in one line; empty if the broker does not say."""
    answer = _get(f"{admin_url}/recovery", access, RECOVERY_TIMEOUT_S)
    if not isinstance(answer, Mapping):
        return ""
    logs, remaining = answer.get("logs"), answer.get("remainingLogsToRecover")
    if not (isinstance(logs, int) and isinstance(remaining, int) and remaining):
        return ""
    return f"{remaining} of {logs} logs remain"


def _get(url: str, access: AdminAccess, timeout_s: float = TIMEOUT_S) -> Any:
    """The JSON at an address, whatever its status; None without an answer in time."""
    return get_json(url, timeout_s, token=access.token, tls=access.tls)
