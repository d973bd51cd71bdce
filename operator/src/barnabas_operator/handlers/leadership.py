"""Where this operator may act: in each namespace whose Lease it holds.

One rule holds for all operators, however many there are and whatever each watches: what is written
in a namespace is written by the holder of the Lease `barnabas-operator` of that namespace. The
operator itself asks for it before each write (handlers.guard).

An operator that watches some namespaces is elected in each of them. Those that watch all namespaces
elect one among themselves by one more Lease, in a namespace that every Kubernetes cluster has. The
elected one claims the namespaces in which there is something to do. Claims are in the name of all
such operators, so that the next one goes on with them at once, and they are long: their number is
that of the namespaces, and each renewal is a write. Before a write of its own a claim is read again
(Election.confirm).

Where another operator holds the Lease a namespace is as one that is not watched.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NoReturn, Protocol

from barnabas_operator.handlers.election import Election, Leases, Term, monotonic

# The Lease of operators that watch all namespaces; `default` cannot be deleted.
ALL_NAMESPACES: Final = "barnabas-operator-all-namespaces"
ALL_NAMESPACES_IN: Final = "default"
# How the holder of their claims is called: where to look who it is.
TOGETHER: Final = f"{ALL_NAMESPACES_IN}/{ALL_NAMESPACES}"
CLAIM: Final = Term(lease_s=300, renew_deadline_s=240.0, renew_every_s=60.0)
# Requests at once; those for claims do not delay those of elections.
THREADS: Final = 8


class Changed(Protocol):
    """Called in the event loop when the leadership changes."""

    def __call__(self, namespace: str | None, *, leads: bool | None) -> None:
        """Of a namespace, or of all (None); `leads` is None where nothing is claimed any more."""
        ...


def identity_of(namespace: str, release: str, instance: str) -> str:
    """The holder of a Lease: a process of a release."""
    return f"{namespace}/{release}/{instance}"


class Leadership:
    """The elections of an operator.

    Methods that ask something may be called from any thread, others from the event loop only.
    """

    def __init__(
        self,
        leases: Leases,
        *,
        namespaces: Collection[str],
        identity: str,
        changed: Changed,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`namespaces` are those that are watched; all if empty."""
        self._leases = leases
        self._identity = identity
        self._changed = changed
        self._clock = clock
        self._elections = {
            each: Election(leases, each, identity, clock=clock) for each in namespaces
        }
        self._overall: Election | None = None
        if not namespaces:
            self._overall = Election(
                leases, ALL_NAMESPACES_IN, identity, lease=ALL_NAMESPACES, clock=clock
            )
        # What is released at the end. Claims stay those of the next operator.
        self.elected = (
            (self._overall,) if self._overall is not None else tuple(self._elections.values())
        )
        # The namespaces to claim, and those of them that came after the last list began.
        self._wanted: frozenset[str] = frozenset()
        self._recent: set[str] = set()
        self._woken = asyncio.Event()

    def leads(self, namespace: str) -> bool:
        """Whether this operator may write in a namespace now."""
        election = self._elections.get(namespace)
        return election is not None and election.leads() and self._leads_overall()

    def may_write(self, namespace: str) -> bool:
        """As `leads`, on what the API server said not long ago. Raises KubeError."""
        election = self._elections.get(namespace)
        if election is not None:
            election.confirm()
        return self.leads(namespace)

    def acts_in(self, namespace: str) -> bool:
        """Whether the operator decides about what is in a namespace, or nothing is there."""
        return namespace not in self._elections or self.leads(namespace)

    def may_reconcile(self, namespace: str) -> bool:
        """Whether there may be something to do for the clusters of a namespace.

        Where another operator acts, or which is not watched, that is about resources of other
        namespaces that name a cluster there. Until it is known who acts, there is nothing.
        """
        if not self._leads_overall():
            return False
        election = self._elections.get(namespace)
        if election is None:
            return self._overall is not None or self._leads_any()
        return election.leads() or (bool(election.holder) and self._leads_any())

    def other_release(self, namespace: str) -> str:
        """What holds the Lease of a namespace, if that is another installation of the operator.

        Empty where this one acts, and where another process of this installation does.
        """
        candidates = (self._overall, self._elections.get(namespace))
        for each in candidates:
            if each is not None and not each.leads() and each.holder:
                own = each.holder.rpartition("/")[0] == self._identity.rpartition("/")[0]
                return "" if own else each.holder
        return ""

    def claim(self, namespace: str) -> None:
        """There is something in a namespace, as an event says."""
        self._recent.add(namespace)
        self._want(self._wanted | {namespace})

    def claim_only(self, namespaces: Iterable[str], *, complete: bool) -> None:
        """There is something in these namespaces and, if `complete`, in no other.

        What is claimed no longer is not released, for a call may be on its way: the claim expires.
        """
        found = frozenset(namespaces)
        self._want(found | self._recent if complete else found | self._wanted)
        self._recent.clear()

    async def run(self) -> NoReturn:
        """Hold or wait for the Leases for ever."""
        running: dict[Election, asyncio.Task[NoReturn]] = {}
        elected, claims = (ThreadPoolExecutor(THREADS, name) for name in ("lease", "claim"))
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._woken.clear()
                    current = self.elections()
                    for each in running.keys() - current:
                        running.pop(each).cancel()
                    for each in current - running.keys():
                        threads = elected if each in self.elected else claims
                        changed = functools.partial(self._election_changed, each)
                        running[each] = tasks.create_task(each.run(threads, changed))
                    await self._woken.wait()
        finally:
            for threads in (elected, claims):
                threads.shutdown(wait=False, cancel_futures=True)

    def elections(self) -> set[Election]:
        """The Leases to hold or wait for at present."""
        return {*self.elected, *self._elections.values()}

    def follow(self) -> None:
        """Claim what is wanted, and nothing without the overall leadership."""
        if self._overall is None:
            return
        wanted = self._wanted if self._overall.leads() else frozenset()
        for namespace in self._elections.keys() - wanted:
            del self._elections[namespace]
            self._changed(namespace, leads=None)
        for namespace in wanted - self._elections.keys():
            self._elections[namespace] = Election(
                self._leases, namespace, TOGETHER, term=CLAIM, clock=self._clock
            )
        self._woken.set()

    def _leads_overall(self) -> bool:
        return self._overall is None or self._overall.leads()

    def _leads_any(self) -> bool:
        return any(each.leads() for each in list(self._elections.values()))

    def _want(self, namespaces: frozenset[str]) -> None:
        self._wanted = namespaces
        self.follow()

    def _election_changed(self, election: Election) -> None:
        if election is self._overall:
            self.follow()
            self._changed(None, leads=election.leads())
        else:
            self._changed(election.namespace, leads=election.leads())
