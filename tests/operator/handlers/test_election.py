"""Leader election: of several operators one acts, and a second is harmless and says so."""

from __future__ import annotations

import asyncio
import copy
import functools
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from barnabas_operator.handlers.election import (
    CONFIRM_S,
    ELECTED,
    LEASE,
    RETRY_S,
    Election,
)
from barnabas_operator.kube import LEASES, TIMEOUT_S, Document, Kind, KubeError
from tests.waiting import wait_for

NS = "ns"


@dataclass
class Leases:
    """One Lease of an API server, with its versions; `away` is what every request gets."""

    lease: Document | None = None
    away: KubeError | None = None
    version: int = 0
    now: float = 1000.0
    requests: int = 0

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """See Leases."""
        assert (kind.kind, namespace, name) == ("Lease", NS, LEASE)
        self._answer()
        return copy.deepcopy(self.lease)

    def create(self, kind: Kind, namespace: str, body: Document) -> Document:
        """See Leases."""
        self._answer()
        if self.lease is not None:
            raise KubeError(409, "already exists")
        return self._store(body)

    def replace(self, kind: Kind, namespace: str, name: str, body: Document) -> Document:
        """See Leases."""
        self._answer()
        if self.lease is None:
            raise KubeError(404, "not found")
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise KubeError(409, "the object has been modified")
        return self._store(body)

    def candidate(self, identity: str) -> Election:
        """An operator whose clock is that of the test."""
        return Election(self, NS, identity, clock=lambda: self.now)

    def spec(self, name: str) -> object:
        """A field of the Lease."""
        assert self.lease is not None
        return self.lease["spec"][name]

    def _answer(self) -> None:
        self.requests += 1
        if self.away is not None:
            raise self.away

    def _store(self, body: Document) -> Document:
        self.version += 1
        self.lease = copy.deepcopy(body)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.lease)


def test_one_replica_leads_and_the_other_waits() -> None:
    """As long as the first one renews."""
    leases = Leases()
    first, second = leases.candidate("first"), leases.candidate("second")
    for _ in range(40):
        first.attempt()
        second.attempt()
        assert (first.leads(), second.leads(), second.holder) == (True, False, "first")
        leases.now += RETRY_S
    assert leases.spec("leaseTransitions") == 0


def test_a_leader_that_cannot_renew_stops_before_another_may_take_over() -> None:
    """Its last call may take its whole time limit, and still ends earlier than the Lease."""
    leases = Leases()
    first, second = leases.candidate("first"), leases.candidate("second")
    first.attempt()
    second.attempt()
    assert ELECTED.renew_deadline_s + TIMEOUT_S < ELECTED.lease_s
    leases.now += ELECTED.renew_deadline_s
    assert not first.leads()
    leases.now += TIMEOUT_S
    second.attempt()
    assert not second.leads()
    leases.now += ELECTED.lease_s
    second.attempt()
    assert (first.leads(), second.leads()) == (False, True)
    assert leases.spec("leaseTransitions") == 1
    first.attempt()
    assert (first.leads(), first.holder) == (False, "second")


def test_the_loser_of_a_race_does_not_lead() -> None:
    """Both saw the Lease expired; the API server lets one write."""
    leases = Leases()
    leases.candidate("old").attempt()
    first, second = leases.candidate("first"), leases.candidate("second")
    first.attempt()
    second.attempt()
    leases.now += ELECTED.lease_s
    expired = leases.get(LEASES, NS, LEASE)
    first.attempt()

    class Late(Leases):
        def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
            """What it read before the other one wrote."""
            return copy.deepcopy(expired)

    late = Late(lease=leases.lease, version=leases.version, now=leases.now)
    second._leases = late
    with pytest.raises(KubeError, match="modified"):
        second.attempt()
    assert (first.leads(), second.leads()) == (True, False)


def test_a_renewal_is_one_request() -> None:
    """As long as nobody else writes the Lease."""
    leases = Leases()
    first = leases.candidate("first")
    first.attempt()
    leases.requests = 0
    for _ in range(3):
        leases.now += ELECTED.renew_every_s
        first.attempt()
    assert (first.leads(), leases.requests) == (True, 3)


@pytest.mark.parametrize("deleted", [True, False], ids=["deleted", "edited"])
def test_a_lease_that_a_user_took_away_is_noticed_before_a_write(deleted: bool) -> None:
    """And at the next renewal, which does not take it back."""
    leases = Leases()
    first, second = leases.candidate("first"), leases.candidate("second")
    first.attempt()
    if deleted:
        leases.lease = None
    else:
        assert leases.lease is not None
        leases.lease["spec"]["holderIdentity"] = ""
        leases.lease["metadata"]["resourceVersion"] = "edited"
    second.attempt()
    first.confirm()
    # It has just renewed.
    assert (first.leads(), second.leads()) == (True, True)
    leases.now += CONFIRM_S
    first.confirm()
    assert (first.leads(), second.leads()) == (False, True)
    first.attempt()
    assert (first.leads(), first.holder) == (False, "second")


def test_a_renewal_that_is_not_answered_may_have_been_done() -> None:
    """The next attempt reads what it did."""
    leases = Leases()
    first = leases.candidate("first")
    first.attempt()
    leases.away = KubeError(0, "timed out")
    with pytest.raises(KubeError, match="timed out"):
        first.attempt()
    leases.away = None
    assert leases.lease is not None
    leases.lease["metadata"]["resourceVersion"] = "late"
    leases.now += ELECTED.renew_deadline_s
    assert not first.leads()
    first.attempt()
    assert first.leads()


def test_a_clean_stop_hands_over_at_once() -> None:
    """Nobody waits for the Lease to expire."""
    leases = Leases()
    first, second = leases.candidate("first"), leases.candidate("second")
    first.attempt()
    first.release()
    second.attempt()
    assert (first.leads(), second.leads()) == (False, True)
    first.release()
    assert leases.spec("holderIdentity") == "second"


def test_a_standby_and_a_forbidden_lease_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In the log, once for each holder and each error."""
    leases = Leases()
    leases.candidate("first").attempt()
    refused = Leases(away=KubeError(403, "leases is forbidden"))

    async def scenario() -> None:
        with ThreadPoolExecutor(2) as threads:
            tasks = [
                asyncio.create_task(each.candidate("second").run(threads, lambda: None))
                for each in (leases, refused)
            ]
            reported = functools.partial(len, caplog.records)
            await asyncio.to_thread(
                wait_for, "both lines", reported, until=lambda count: count >= 2
            )
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    assert "is held by first; this operator does not act" in caplog.text
    assert "Lease renewal failed: namespace=ns leases is forbidden" in caplog.text
