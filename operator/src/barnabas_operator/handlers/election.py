"""Leader election by a Lease: of several operators that watch a namespace, one acts.

The rules are those of client-go. Whether another holder's Lease has expired is judged by how long
it stood unchanged here, so clocks of machines do not matter. A leader stops acting some time after
its last renewal. Together with the longest call that it may have begun just before
(RENEW_DEADLINE_S and kube.TIMEOUT_S), that is earlier than another operator may take the Lease.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, Protocol

from barnabas_operator.kube import LEASES, Document, Kind, KubeError
from barnabas_operator.names import FIELD_MANAGER

logger: Final = logging.getLogger(__name__)

LEASE: Final = "barnabas-operator"
LEASE_S: Final = 45
RENEW_DEADLINE_S: Final = 20.0
RETRY_S: Final = 5.0


class Leases(Protocol):
    """What is asked of the API server. All raise KubeError."""

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """The object, or None."""
        ...

    def create(self, kind: Kind, namespace: str, body: Document) -> object:
        """Create the object; status 409 if there is one."""
        ...

    def replace(self, kind: Kind, namespace: str, name: str, body: Document) -> None:
        """Replace the object if it has the resourceVersion of the body; else status 409."""
        ...


class Election:
    """This operator as a candidate for the Lease of one namespace."""

    def __init__(
        self,
        leases: Leases,
        namespace: str,
        identity: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.namespace = namespace
        self._leases = leases
        self._identity = identity
        self._clock = clock
        self._renewed_at: float | None = None
        self._other: tuple[str, str] = ("", "")
        self._other_since = 0.0

    def leads(self) -> bool:
        """Whether this operator may act now; asked before every write."""
        renewed_at = self._renewed_at
        return renewed_at is not None and self._clock() - renewed_at < RENEW_DEADLINE_S

    @property
    def holder(self) -> str:
        """The other operator that holds the Lease, empty if none was seen."""
        return self._other[0]

    def attempt(self) -> None:
        """Take or renew the Lease, if that is due to this operator. Raises KubeError."""
        started = self._clock()
        found = self._leases.get(LEASES, self.namespace, LEASE)
        if found is None:
            self._leases.create(LEASES, self.namespace, self._body(None, self._identity))
        elif self._is_held_by_another(found, started):
            self._renewed_at = None
            return
        else:
            self._replace(found, self._identity)
        # From before the request: others count from when they see it, which is later.
        self._renewed_at = started
        self._other = ("", "")

    def release(self) -> None:
        """Let another operator take over at once; only after the last pass ended."""
        if not self.leads():
            return
        self._renewed_at = None
        found = self._leases.get(LEASES, self.namespace, LEASE)
        if found is not None and (found.get("spec") or {}).get("holderIdentity") == self._identity:
            self._replace(found, "")

    async def run(self, threads: Executor, changed: Callable[[], None]) -> NoReturn:
        """Hold or wait for the Lease for ever; calls `changed` when leadership changes."""
        led, holder, problem = False, "", ""
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(threads, self.attempt)
                problem = ""
            except KubeError as error:
                # Another operator was quicker: the next attempt sees which.
                if error.status != 409 and str(error) != problem:
                    problem = str(error)
                    logger.warning("Lease renewal failed: namespace=%s %s", self.namespace, error)
            leads = self.leads()
            if leads != led:
                text = "Became the leader" if leads else "Lost the leadership"
                logger.info("%s: namespace=%s lease=%s", text, self.namespace, LEASE)
                led = leads
                changed()
            if self.holder and self.holder != holder:
                text = "Standby: namespace=%s lease=%s is held by %s; this operator does not act"
                logger.info(text, self.namespace, LEASE, self.holder)
            holder = self.holder
            await asyncio.sleep(RETRY_S)

    def _is_held_by_another(self, found: Document, now: float) -> bool:
        spec = found.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder in ("", self._identity):
            return False
        seen = (holder, found["metadata"]["resourceVersion"])
        if seen != self._other:
            self._other, self._other_since = seen, now
        return now - self._other_since < float(spec.get("leaseDurationSeconds") or LEASE_S)

    def _replace(self, found: Document, holder: str) -> None:
        self._leases.replace(LEASES, self.namespace, LEASE, self._body(found, holder))

    def _body(self, found: Document | None, holder: str) -> Document:
        now = datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        old: dict[str, Any] = (found or {}).get("spec") or {}
        renewal = bool(holder) and old.get("holderIdentity") == holder
        taken = {"acquireTime": old.get("acquireTime") if renewal else now}
        transitions = old.get("leaseTransitions") or 0
        meta = {"name": LEASE, "namespace": self.namespace}
        if found is not None:
            meta["resourceVersion"] = found["metadata"]["resourceVersion"]
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {**meta, "labels": {"app.kubernetes.io/managed-by": FIELD_MANAGER}},
            "spec": {
                **taken,
                "holderIdentity": holder,
                "leaseDurationSeconds": LEASE_S,
                "renewTime": now,
                "leaseTransitions": transitions + bool(holder and found and not renewal),
            },
        }
