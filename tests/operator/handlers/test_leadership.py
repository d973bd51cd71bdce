"""Several operators that watch all namespaces or some: of each namespace one acts."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from barnabas_operator.handlers.election import CONFIRM_S, ELECTED, LEASE, RETRY_S, Election
from barnabas_operator.handlers.leadership import (
    CLAIM,
    TOGETHER,
    Leadership,
    identity_of,
)
from barnabas_operator.kube import TIMEOUT_S, Document, Kind, KubeError

X, Y, Z = "x", "y", "z"
SEEDS = 12
STEPS = 250


class Leases:
    """The Leases of an API server; `meanwhile` is called before each request is done."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Document] = {}
        self.meanwhile: Callable[[], None] = lambda: None
        self.requests = 0
        self._version = 0

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """See Leases."""
        assert kind.kind == "Lease"
        self._answer()
        return copy.deepcopy(self.objects.get((namespace, name)))

    def create(self, kind: Kind, namespace: str, body: Document) -> Document:
        """See Leases."""
        assert kind.kind == "Lease"
        self._answer()
        if (namespace, body["metadata"]["name"]) in self.objects:
            raise KubeError(409, "already exists")
        return self._store(namespace, body)

    def replace(self, kind: Kind, namespace: str, name: str, body: Document) -> Document:
        """See Leases."""
        assert kind.kind == "Lease"
        self._answer()
        found = self.objects.get((namespace, name))
        if found is None:
            raise KubeError(404, "not found")
        if found["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            raise KubeError(409, "the object has been modified")
        return self._store(namespace, body)

    def _answer(self) -> None:
        self.requests += 1
        self.meanwhile()

    def _store(self, namespace: str, body: Document) -> Document:
        self._version += 1
        stored = copy.deepcopy(body)
        stored["metadata"]["resourceVersion"] = str(self._version)
        self.objects[namespace, body["metadata"]["name"]] = stored
        return copy.deepcopy(stored)


class Installation:
    """An operator of a release in a namespace of its own, with a clock of its own."""

    def __init__(self, world: World, name: str, *namespaces: str, pod: str = "pod") -> None:
        self.name = f"{name}-{pod}"
        self._world = world
        self._ahead, self._rate = 1000.0 * len(world.installations), 1.0
        self.leadership = Leadership(
            world.leases,
            namespaces=namespaces,
            identity=identity_of(name, "barnabas-operator", pod),
            changed=lambda *_, **__: None,
            clock=lambda: self._ahead + self._rate * world.now,
        )
        world.installations.append(self)

    def run_at(self, rate: float) -> None:
        """Have its clock run so much faster than others."""
        self._rate = rate

    def attempt(self) -> None:
        """One turn of all its elections, as `run` makes them."""
        self.leadership.claim_only(self._world.namespaces, complete=True)
        done: set[Election] = set()
        while todo := self.leadership.elections() - done:
            for each in todo:
                done.add(each)
                try:
                    each.attempt()
                except KubeError:
                    continue
            self.leadership.follow()

    def leads(self) -> set[str]:
        """Where it may act."""
        return {each for each in self._world.namespaces if self.leadership.leads(each)}


class World:
    """Operators and one API server; `namespaces` have resources."""

    def __init__(self, *namespaces: str) -> None:
        self.now = 0.0
        self.leases = Leases()
        self.namespaces = set(namespaces)
        self.installations: list[Installation] = []

    def run(self, seconds: float, *running: Installation) -> None:
        """Let time pass for these operators."""
        end = self.now + seconds
        while self.now < end:
            for each in running:
                each.attempt()
            self.now += RETRY_S


def test_of_two_that_watch_all_namespaces_one_acts() -> None:
    """Wherever they are installed; the other one follows when the Lease of the first expires."""
    world = World(X, Y)
    first, second = Installation(world, "first"), Installation(world, "second")
    world.run(RETRY_S, first, second)
    assert (first.leads(), second.leads()) == ({X, Y}, set())
    assert second.leadership.other_release(X) == "first/barnabas-operator/pod"
    assert not second.leadership.may_reconcile(X)
    world.run(10 * ELECTED.lease_s, first, second)
    assert (first.leads(), second.leads()) == ({X, Y}, set())
    world.run(ELECTED.lease_s - RETRY_S, second)
    assert (first.leads(), second.leads()) == (set(), set())
    world.run(2 * RETRY_S, second)
    # The claims are at once its own, long as they are.
    assert (first.leads(), second.leads()) == (set(), {X, Y})


def test_one_that_watches_all_and_one_of_a_namespace() -> None:
    """Whoever comes first has the namespace; the other one has the rest."""
    world = World(X, Y)
    one, every = Installation(world, "one", X), Installation(world, "every")
    world.run(RETRY_S, one, every)
    assert (one.leads(), every.leads()) == ({X}, {Y})
    assert every.leadership.other_release(X) == "one/barnabas-operator/pod"
    assert every.leadership.other_release(Y) == ""
    # About what names a cluster of x elsewhere it has something to say.
    assert every.leadership.may_reconcile(X)
    assert not every.leadership.acts_in(X)
    for each in one.leadership.elected:
        each.release()
    world.run(RETRY_S, every)
    assert every.leads() == {X, Y}
    world.run(RETRY_S, one, every)
    assert (one.leads(), every.leads()) == (set(), {X, Y})
    assert one.leadership.other_release(X) == TOGETHER
    world.run(CLAIM.lease_s - RETRY_S, one)
    assert one.leads() == set()
    world.run(2 * RETRY_S, one)
    assert (one.leads(), every.leads()) == ({X}, set())


def test_processes_of_one_release_are_no_others() -> None:
    """A standby of the same installation is nothing to tell."""
    world = World(X)
    first, second = Installation(world, "a"), Installation(world, "a", pod="standby")
    world.run(RETRY_S, first, second)
    assert (first.leads(), second.leads()) == ({X}, set())
    assert second.leadership.other_release(X) == ""


def test_renewals_in_a_steady_state() -> None:
    """One write for each namespace in a minute, and one for the election in five seconds."""
    world = World(*(f"ns{number}" for number in range(100)))
    every = Installation(world, "every")
    world.run(RETRY_S, every)
    assert len(every.leads()) == 100
    world.leases.requests = 0
    elections = every.leadership.elections()
    rates = [1 / each._term.renew_every_s for each in elections]
    assert sum(rates) == pytest.approx(100 / 60 + 1 / 5)
    for each in elections:
        each.attempt()
    assert world.leases.requests == len(elections)


def test_a_namespace_without_resources_is_claimed_no_longer() -> None:
    """And not released: a call may be on its way. A new one is claimed at its first event."""
    world = World(X, Y)
    every = Installation(world, "every")
    world.run(RETRY_S, every)
    world.namespaces.remove(Y)
    world.run(RETRY_S, every)
    assert not every.leadership.leads(Y)
    assert world.leases.objects[Y, LEASE]["spec"]["holderIdentity"] == TOGETHER
    every.leadership.claim(Z)
    assert Z in every.leadership._elections
    # A list that had begun before does not know of it.
    every.leadership.claim_only({X}, complete=True)
    assert Z in every.leadership._elections
    # One that failed in part says nothing of the rest.
    every.leadership.claim_only((), complete=False)
    assert {X, Z} == every.leadership._elections.keys()
    every.leadership.claim_only({X}, complete=True)
    assert {X} == every.leadership._elections.keys()


def test_a_claim_that_a_user_deleted_is_noticed_before_a_write() -> None:
    """Its next renewal may be a minute away."""
    world = World(X)
    every, one = Installation(world, "every"), Installation(world, "one", X)
    world.run(RETRY_S, every)
    del world.leases.objects[X, LEASE]
    one.attempt()
    assert (one.leads(), every.leads()) == ({X}, {X})
    world.now += CONFIRM_S
    assert not every.leadership.may_write(X)
    assert (one.leadership.may_write(X), every.leads()) == (True, set())


def test_without_rights_on_the_lease_nothing_is_done() -> None:
    """Neither where all namespaces are watched nor where one is."""
    world = World(X)

    def refuse() -> None:
        raise KubeError(403, "leases is forbidden")

    world.leases.meanwhile = refuse
    installations = Installation(world, "every"), Installation(world, "one", X)
    world.run(ELECTED.lease_s, *installations)
    for each in installations:
        assert each.leads() == set()
        assert not each.leadership.may_reconcile(X)
        assert not each.leadership.may_write(X)


def test_a_namespace_that_is_being_deleted_stops_no_other() -> None:
    """Nothing can be created there, nor can its Lease be renewed."""
    world = World(X, Y)
    every = Installation(world, "every")
    world.run(RETRY_S, every)
    create = world.leases.create

    def terminating(kind: Kind, namespace: str, body: Document) -> Document:
        if namespace == X:
            raise KubeError(403, "the namespace is being terminated")
        return create(kind, namespace, body)

    world.leases.create = terminating  # type: ignore[method-assign]
    del world.leases.objects[X, LEASE]
    world.now += CONFIRM_S
    assert not every.leadership.may_write(X)
    world.run(CLAIM.lease_s, every)
    assert every.leads() == {Y}


class Interleaving:
    """A random schedule: requests that take time, fail or lose their answers, operators that stop
    for a while, and others that are asked in the middle of a request."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(X, Y, Z)
        self.world.leases.meanwhile = self._meanwhile
        for name, namespaces in (("a", ()), ("b", ()), ("one", (X,)), ("two", (X, Y))):
            each = Installation(self.world, name, *namespaces)
            each.run_at(self.random.uniform(0.99, 1.01))
        self.depth = 0
        # Until when a write of each operator may still be on its way, by namespace.
        self.writes: dict[str, dict[str, float]] = defaultdict(dict)
        self.led: set[tuple[str, str]] = set()

    def run(self) -> None:
        """All steps, judged after each."""
        for _ in range(STEPS):
            self.random.choice(self.world.installations).attempt()
            self._pass_time(self.random.choice([0.0, 1.0, RETRY_S]))
            # Seldom, nobody gets anything done for as long as a Lease.
            if self.random.random() < 0.01:
                self._pass_time(self.random.choice([ELECTED.lease_s, CLAIM.lease_s]))

    def _meanwhile(self) -> None:
        self._pass_time(self.random.choice([0.0, 0.0, 1.0, TIMEOUT_S - 1.0]))
        if self.depth < 2 and self.random.random() < 0.3:
            self.depth += 1
            other = self.random.choice(self.world.installations)
            if not self._is_busy(other):
                other.attempt()
            self.depth -= 1
        if self.random.random() < 0.1:
            raise KubeError(0, "timed out")

    def _is_busy(self, installation: Installation) -> bool:
        return any(each._lock.locked() for each in installation.leadership.elections())

    def _pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds) + 1):
            self._judge()
            self.world.now += seconds / (int(seconds) + 1)
        self._judge()

    def _judge(self) -> None:
        for installation, namespace in self._leaders():
            writes = self.writes[namespace]
            writes[installation.name] = self.world.now + TIMEOUT_S
            self.led.add((installation.name, namespace))
            late = {name for name, end in writes.items() if end > self.world.now}
            assert late == {installation.name}, f"{late} write in {namespace}"

    def _leaders(self) -> Iterator[tuple[Installation, str]]:
        for installation in self.world.installations:
            for namespace in installation.leads():
                yield installation, namespace


def test_however_they_meet_no_two_write_in_a_namespace() -> None:
    """Not even what one has sent just before it lost the leadership."""
    led: set[tuple[str, str]] = set()
    for seed in range(SEEDS):
        interleaving = Interleaving(seed)
        interleaving.run()
        led |= interleaving.led
    # Everyone has had what it watches.
    expected = {(name, each) for name in ("a-pod", "b-pod") for each in (X, Y, Z)}
    assert led == {*expected, ("one-pod", X), ("two-pod", X), ("two-pod", Y)}
