"""Events on the resources, which `kubectl describe` shows: what the operator did, and why.

Events are for people and never stop a pass. The same note on the same object is written once in
ten minutes, and an object gets a burst of events of each action and then one a minute: a flapping
cluster must not fill the API server's storage, and the objects of a new one must not use up what
records its first roll.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol

from barnabas_operator.handlers.rate_limits import RateLimit
from barnabas_operator.kube import EVENTS, Document, Kind, KubeError
from barnabas_operator.names import FIELD_MANAGER
from barnabas_operator.reconcile.context import Regarding

logger: Final = logging.getLogger(__name__)

REPEAT_S: Final = 600.0
REFILL_S: Final = 60.0
BURST: Final = 25
# Limits of the API server.
LONGEST_NOTE: Final = 1024
LONGEST_NAME: Final = 200


class Events(Protocol):
    """What is asked of the API server."""

    def create(self, kind: Kind, namespace: str, body: Document) -> object:
        """Create the object. Raises KubeError."""
        ...


class EventLimits:
    """The bounds of all recorders of one operator."""

    def __init__(
        self, repeats: RateLimit | None = None, by_action: RateLimit | None = None
    ) -> None:
        self._repeats = repeats or RateLimit(REPEAT_S)
        self._by_action = by_action or RateLimit(REFILL_S, burst=BURST)

    def allow(self, uid: str, action: str, reason: str, note: str) -> bool:
        """Whether an event may be written."""
        return self._repeats.allows((uid, reason, note)) and self._by_action.allows((uid, action))


class EventRecorder:
    """Writes events through the API server; see reconcile.context.Recorder."""

    def __init__(
        self,
        events: Events,
        limits: EventLimits,
        instance: str,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(tz=UTC),
    ) -> None:
        self._events = events
        self._limits = limits
        self._instance = instance[:128]
        self._now = now

    def record(
        self, regarding: Regarding, *, action: str, reason: str, note: str, warning: bool = False
    ) -> None:
        """Write an event, unless it repeats another or there were too many."""
        note = note if len(note) <= LONGEST_NOTE else f"{note[: LONGEST_NOTE - 1]}…"
        if not self._limits.allow(regarding.uid, action, reason, note):
            return
        body = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{regarding.name[:LONGEST_NAME]}.{uuid.uuid4().hex[:16]}",
                "namespace": regarding.namespace,
            },
            "eventTime": self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": f"barnabas.io/{FIELD_MANAGER}",
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "note": note,
            "type": "Warning" if warning else "Normal",
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid,
            },
        }
        try:
            self._events.create(EVENTS, regarding.namespace, body)
        except KubeError as error:
            logger.debug("Event lost: %s/%s %s", regarding.namespace, regarding.name, error)
