"""How a pipeline fares, asked of its pod: a port, and its adaptor over HTTP."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TIMEOUT_S: Final = 3.0
LARGEST: Final = 1 << 20


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
        """From the pod's JSON; what it does not say yet is as at the beginning."""
        return cls(
            phase=str(document.get("phase") or "Starting"),
            message=str(document.get("message") or ""),
            rows=int(document.get("rows") or 0),
            rows_per_second=round(float(document.get("rowsPerSecond") or 0.0), 1),
            lag=_total(document.get("lag")),
            last_batch_id=int(document["lastBatchId"])
            if document.get("lastBatchId") is not None
            else -1,
        )


def _total(lag: Any) -> int:
    """The lag of all topics together, where it is given by topic."""
    if isinstance(lag, Mapping):
        return sum(_total(part) for part in lag.values())
    return int(lag or 0)


def ask(url: str) -> Progress | None:
    """The progress of the pipeline at an address; None while it does not answer."""
    # The address is of our own making (PipelineNames), always http.
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            document = json.loads(answer.read(LARGEST))
    except (OSError, ValueError):
        return None
    return Progress.of(document) if isinstance(document, Mapping) else None
