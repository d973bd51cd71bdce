"""Leader election by a Lease: of several operators that may act in a namespace, one acts.

The rules are those of client-go. Whether another holder's Lease has expired is judged by how long
it stood unchanged here, so clocks of machines do not matter. A leader stops acting some time after
its last renewal. Together with the longest call that it may have begun just before
(Term.renew_deadline_s and kube.TIMEOUT_S), that is earlier than another operator may take the
Lease. A Lease that a user has deleted or edited meanwhile is noticed at the next renewal, or
before the next write (`confirm`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, Protocol

from barnabas_operator.kube import LEASES, Document, Kind, KubeError
from barnabas_operator.names import FIELD_MANAGER

logger: Final = logging.getLogger(__name__)

LEASE: Final = "barnabas-operator"
# While another operator holds the Lease, or the API server does not answer.
RETRY_S: Final = 5.0
# What was read of a Lease may be so old when something is written.
CONFIRM_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """For how many seconds a Lease is held, acted on without a renewal, and when it is renewed."""

    lease_s: int
    renew_deadline_s: float
    renew_every_s: float


# Of an operator that is elected: another one follows soon.
ELECTED: Final = Term(lease_s=45, renew_deadline_s=20.0, renew_every_s=5.0)


class Leases(Protocol):
    """What is asked of the API server. All raise KubeError."""

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """The object, or None."""
        ...

    def create(self, kind: Kind, namespace: str, body: Document) -> Document:
        """Create the object and return it; status 409 if there is one."""
        ...

    def replace(self, kind: Kind, namespace: str, name: str, body: Document) -> Document:
        """Replace the object if it has the resourceVersion of the body; else status 409."""
        ...


def monotonic() -> float:
    """Seconds that also pass while the machine is suspended, where the system counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Election:
    """This operator as a candidate for a Lease in one namespace. Thread-safe."""

    def __init__(
        self,
        leases: Leases,
        namespace: str,
        identity: str,
        *,
        lease: str = LEASE,
        term: Term = ELECTED,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.namespace = namespace
        self._leases = leases
        self._identity = identity
        self._lease = lease
        self._term = term
        self._clock = clock
        # Held during requests: what one has read does not overrule what a later one has found.
        self._lock = threading.Lock()
        # The Lease as last written here: a renewal need not read it.
        self._held: Document | None = None
        self._renewed_at: float | None = None
        self._read_at = 0.0
        self._other: tuple[str, str] = ("", "")
        self._other_since = 0.0

    def leads(self) -> bool:
        """Whether this operator may act now; asked before every write."""
        renewed_at = self._renewed_at
        return renewed_at is not None and self._clock() - renewed_at < self._term.renew_deadline_s

    @property
    def holder(self) -> str:
        """The other operator that holds the Lease, empty if none was seen."""
        return self._other[0]

    def attempt(self) -> None:
        """Take or renew the Lease, if that is due to this operator. Raises KubeError."""
        with self._lock:
            started = self._clock()
            if not self._renew_held():
                found = self._leases.get(LEASES, self.namespace, self._lease)
                if found is not None and self._is_held_by_another(found):
                    self._renewed_at = None
                    return
                self._write(found, self._identity)
            # From before the request: others count from when they see it, which is later.
            self._renewed_at = self._read_at = started
            self._other = ("", "")

    def confirm(self) -> None:
        """Find out that the Lease is another's by now, unless it was read just before.

        Raises KubeError.
        """
        with self._lock:
            started = self._clock()
            if not self.leads() or started - self._read_at < CONFIRM_S:
                return
            found = self._leases.get(LEASES, self.namespace, self._lease)
            if found is None or _holder_of(found) != self._identity:
                self._renewed_at = None
            self._read_at = started

    def release(self) -> None:
        """Let another operator take over at once; only after the last pass ended."""
        with self._lock:
            if not self.leads():
                return
            self._renewed_at = None
            found = self._leases.get(LEASES, self.namespace, self._lease)
            if found is not None and _holder_of(found) == self._identity:
                self._write(found, "")

    async def run(self, threads: Executor, changed: Callable[[], None]) -> NoReturn:
        """Hold or wait for the Lease for ever; calls `changed` when leadership changes."""
        led, holder, problem = False, "", ""
        while True:
            renewed = True
            try:
                await asyncio.get_running_loop().run_in_executor(threads, self.attempt)
                problem = ""
            except KubeError as error:
                renewed = False
                # Another operator was quicker: the next attempt sees which.
                if error.status != 409 and str(error) != problem:
                    problem = str(error)
                    logger.warning("Lease renewal failed: namespace=%s %s", self.namespace, error)
            leads = self.leads()
            if leads != led:
                text = "Became the leader" if leads else "Lost the leadership"
                logger.info("%s: namespace=%s lease=%s", text, self.namespace, self._lease)
                led = leads
                changed()
            if self.holder and self.holder != holder:
                text = "Standby: namespace=%s lease=%s is held by %s; this operator does not act"
                logger.info(text, self.namespace, self._lease, self.holder)
            holder = self.holder
            await asyncio.sleep(self._term.renew_every_s if renewed and leads else RETRY_S)

    def _renew_held(self) -> bool:
        """Whether the Lease is still as it was written here, and so is renewed."""
        held, self._held = self._held, None
        if held is None:
            return False
        try:
            self._write(held, self._identity)
        except KubeError as error:
            # Edited or deleted since: who holds it now?
            if error.status not in (404, 409):
                raise
            return False
        return True

    def _is_held_by_another(self, found: Document) -> bool:
        # After the answer: before it, while it was late, the holder may have renewed.
        now = self._clock()
        holder = _holder_of(found)
        if holder in ("", self._identity):
            return False
        seen = (holder, found["metadata"]["resourceVersion"])
        if seen != self._other:
            self._other, self._other_since = seen, now
        duration = (found.get("spec") or {}).get("leaseDurationSeconds") or self._term.lease_s
        return now - self._other_since < float(duration)

    def _write(self, found: Document | None, holder: str) -> None:
        body = self._body(found, holder)
        if found is None:
            written = self._leases.create(LEASES, self.namespace, body)
        else:
            written = self._leases.replace(LEASES, self.namespace, self._lease, body)
        self._held = written if holder else None

    def _body(self, found: Document | None, holder: str) -> Document:
        now = datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        old: dict[str, Any] = (found or {}).get("spec") or {}
        renewal = bool(holder) and old.get("holderIdentity") == holder
        taken = {"acquireTime": old.get("acquireTime") if renewal else now}
        transitions = old.get("leaseTransitions") or 0
        meta = {"name": self._lease, "namespace": self.namespace}
        if found is not None:
            meta["resourceVersion"] = found["metadata"]["resourceVersion"]
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {**meta, "labels": {"app.kubernetes.io/managed-by": FIELD_MANAGER}},
            "spec": {
                **taken,
                "holderIdentity": holder,
                "leaseDurationSeconds": self._term.lease_s,
                "renewTime": now,
                "leaseTransitions": transitions + bool(holder and found and not renewal),
            },
        }


def _holder_of(lease: Document) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
