"""What a broker answers on its admin port: may it be restarted, has it caught up?"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas_broker.cli.errors import CommandError

ANSWER_BYTES_MAX: Final = 1 << 20
EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::", "[::]"})  # noqa: S104 - told apart, not bound
UNFIT: Final = 503


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no, and what was told besides, as it came."""

    yes: bool
    told: Mapping[str, Any]


def admin_url(listener: str, broker_host: str) -> str | None:
    """Where `barnabas.admin.listener` is reached; None where there is none, or nobody knows.

    A broker that listens on all addresses is reached where clients reach it. Port 0 is one that
    the system chose.
    """
    host, colon, port = listener.rpartition(":")
    if not colon or not port.isdigit() or int(port) == 0:
        return None
    if host in EVERYWHERE:
        host = f"[{broker_host}]" if ":" in broker_host else broker_host
    return f"http://{host}:{port}"


def may_restart(url: str, timeout_s: float) -> Verdict:
    """`GET /restart-check`; CommandError where no broker of ours answers."""
    return _ask(url, "/restart-check", "mayRestart", timeout_s)


def has_caught_up(url: str, timeout_s: float) -> Verdict:
    """`GET /in-sync`; CommandError where no broker of ours answers."""
    return _ask(url, "/in-sync", "inSync", timeout_s)


def risks(verdict: Verdict, group: str) -> list[str]:
    """The partitions of `atRisk` or `unavoidable`, each with why; those left out are counted."""
    told = verdict.told.get(group)
    if not isinstance(told, Mapping):
        return []
    named = [
        f"{each.get('topic')}-{each.get('partition')}: {each.get('reason')}"
        for each in told.get("partitions", [])
        if isinstance(each, Mapping)
    ]
    left = told.get("count", 0) - len(named)
    return [*named, f"and {left} more"] if left > 0 else named


def _ask(url: str, path: str, answer: str, timeout_s: float) -> Verdict:
    try:
        # The scheme is checked where a user may give one.
        with urllib.request.urlopen(f"{url}{path}", timeout=timeout_s) as response:  # noqa: S310
            data = response.read(ANSWER_BYTES_MAX)
    except urllib.error.HTTPError as error:
        with error:
            if error.code != UNFIT:
                raise CommandError(f"{url}{path} answers {error.code} {error.reason}") from None
            data = error.read(ANSWER_BYTES_MAX)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise CommandError(f"no answer from {url}{path}: {reason}") from None
    try:
        told = json.loads(data)
    except ValueError:
        told = None
    if not isinstance(told, dict) or not isinstance(told.get(answer), bool):
        raise CommandError(f"what answers at {url} is not the admin port of a Barnabas broker")
    return Verdict(told[answer], told)
