"""How a pipeline fares, asked of its pod: a port, and its adaptor over HTTP."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas_operator.answers import get_json

TIMEOUT_S: Final = 3.0
# As a condition's reason.
PHASE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
LONGEST: Final = 1024
LARGEST_COUNT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a pipeline says of itself."""

    phase: str
    message: str = ""
    rows: int = 0
    rows_per_second: float = 0.0
    lag: int = 0
    last_batch_id: int = -1

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Progress:
        """From the pod's JSON; what it does not say yet is as at the beginning.

        Raises ValueError or TypeError for what no status can hold.
        """
        phase = str(document.get("phase") or "Starting")
        if not PHASE.fullmatch(phase):
            raise ValueError("phase must be a word")
        speed = float(document.get("rowsPerSecond") or 0.0)
        if not math.isfinite(speed):
            raise ValueError("rowsPerSecond must be a number")
        last = document.get("lastBatchId")
        return cls(
            phase=phase,
            message=_text(document.get("message")),
            rows=_count(document.get("rows")),
            rows_per_second=round(speed, 1),
            lag=_total(document.get("lag")),
            last_batch_id=-1 if last is None else _count(last),
        )


def _total(lag: Any) -> int:
    """The lag of all topics together, where it is given by topic."""
    if isinstance(lag, Mapping):
        return _count(sum(_total(part) for part in lag.values()))
    return _count(lag)


def _count(value: Any) -> int:
    """A number that the API server takes."""
    count = int(value or 0)
    if not -1 <= count <= LARGEST_COUNT:
        raise ValueError("not a count")
    return count


def _text(value: Any) -> str:
    """One that a condition can hold, and that comes back from the API server as it is."""
    return str(value or "").encode(errors="replace").decode()[:LONGEST]


def ask(url: str) -> Progress | None:
    """The progress of the pipeline at an address; None while it does not answer."""
    document = get_json(url, TIMEOUT_S, statuses=range(200, 300))
    if not isinstance(document, Mapping):
        return None
    try:
        return Progress.of(document)
    except (ValueError, TypeError, OverflowError, RecursionError):
        # Of another image, or not yet what it will be.
        return None
