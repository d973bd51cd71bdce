"""Events: which ask for a pass."""

from __future__ import annotations

from typing import Any

from barnabas_operator.handlers.events import Novelty, settings


def _event(kind: str, *, generation: int = 1, leaving: bool = False) -> dict[str, Any]:
    meta: dict[str, Any] = {"uid": "u", "generation": generation}
    if leaving:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"type": kind, "object": {"metadata": meta}}


def test_our_own_status_is_no_news() -> None:
    """Otherwise every status would be followed by a pass, and that by a status."""
    novelty = Novelty()
    assert novelty.is_new(_event("ADDED"))
    assert not novelty.is_new(_event("MODIFIED"))
    assert novelty.is_new(_event("MODIFIED", generation=2))
    assert novelty.is_new(_event("MODIFIED", generation=2, leaving=True))
    assert novelty.is_new(_event("DELETED", generation=2))
    assert novelty.is_new(_event("ADDED", generation=2))


def test_kopf_only_watches() -> None:
    """No events posted, no scanning of namespaces, no watch that hangs for ever."""
    chosen = settings()
    assert not chosen.posting.enabled
    assert chosen.scanning.disabled
    assert chosen.watching.client_timeout is not None
