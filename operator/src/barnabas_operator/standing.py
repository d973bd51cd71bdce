"""Whether a broker may be restarted and has caught up: what its admin port answers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TIMEOUT_S: Final = 10.0
LARGEST: Final = 1 << 20
NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Yes or no, and the reason for a no."""

    yes: bool
    reason: str = ""


def may_restart(admin_url: str) -> Standing:
    """Whether no partition needs this broker more than it should while others come back."""
    told = _ask(f"{admin_url}/restart")
    if not isinstance(told, Mapping):
        return Standing(yes=False, reason="it does not say whether it may be restarted")
    if told.get("mayRestart") is True:
        return Standing(yes=True)
    risk = told.get("atRisk")
    named = risk.get("partitions", []) if isinstance(risk, Mapping) else []
    count = risk.get("count", len(named)) if isinstance(risk, Mapping) else 0
    texts = [f"{each['topic']}-{each['partition']} has {each['reason']}" for each in named[:NAMED]]
    more = f" and {count - len(texts)} more" if count > len(texts) else ""
    return Standing(yes=False, reason=f"{'; '.join(texts)}{more}")


def has_caught_up(admin_url: str) -> Standing:
    """Whether every replica of this broker is in sync."""
    told = _ask(f"{admin_url}/caught-up")
    if not isinstance(told, Mapping):
        return Standing(yes=False, reason="does not say whether it has caught up")
    if told.get("caughtUp") is True:
        return Standing(yes=True)
    return Standing(yes=False, reason=f"{told.get('percent')} % of its replicas are in sync")


def _ask(url: str) -> Any:
    """The JSON at an address, whatever its status; None while nobody answers there."""
    # The address is of our own making, always http.
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return json.loads(answer.read(LARGEST))
    except urllib.error.HTTPError as error:
        with error:
            try:
                return json.loads(error.read(LARGEST))
            except ValueError:
                return None
    except (OSError, ValueError):
        return None
