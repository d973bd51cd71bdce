"""What a broker's admin port answers before and during a roll.

`/restart` says whether a restart puts a partition at risk, `/caught-up` whether its replicas are in
sync, `/recovery` how far log recovery has come. Whatever is not a clear yes is a no. Clusters keep
their broker images when the operator is upgraded, so the first two are asked for under the paths
that older brokers answer too; the names since are `/restart-check` and `/in-sync`.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final

TIMEOUT_S: Final = 10.0
# Progress is asked of brokers that are not ready: their nodes may be gone and never answer.
RECOVERY_TIMEOUT_S: Final = 2.0
LARGEST: Final = 1 << 20
NAMED: Final = 3


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
    return CheckResult(ok=False, reason=f"{'; '.join(texts)}{more}" or "GET /restart: no")


def in_sync(admin_url: str, access: AdminAccess = NO_ACCESS) -> CheckResult:
    """Whether every replica of this broker is in sync."""
    answer = _get(f"{admin_url}/caught-up", access)
    if not isinstance(answer, Mapping):
        return CheckResult(ok=False, reason="GET /caught-up: no answer")
    if answer.get("caughtUp") is True:
        return CheckResult(ok=True)
    return CheckResult(ok=False, reason=f"{answer.get('percent')} % of its replicas are in sync")


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
    until = time.monotonic() + timeout_s
    # The address is of our own making, always http or https.
    request = urllib.request.Request(url)  # noqa: S310
    if access.token:
        request.add_unredirected_header("Authorization", f"Bearer {access.token}")
    try:
        with urllib.request.urlopen(  # noqa: S310
            request, timeout=timeout_s, context=access.tls
        ) as answer:
            return json.loads(_read(answer, until))
    except urllib.error.HTTPError as error:
        with error:
            try:
                return json.loads(_read(error, until))
            except (OSError, ValueError, http.client.HTTPException):
                return None
    except (OSError, ValueError, http.client.HTTPException):
        return None


def _read(answer: IO[bytes], until: float) -> bytes:
    """The body; raises TimeoutError after `until`, also where it drips."""
    received = b""
    # `read1` returns with what is there; `read` would wait for all, a byte at a time.
    while len(received) < LARGEST and (part := answer.read1(LARGEST)):  # type: ignore[attr-defined]
        received += part
        if time.monotonic() > until:
            raise TimeoutError
    return received
