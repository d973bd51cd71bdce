"""Groups of the consumer protocol under a scheduler that does the worst it may: see `scheduler`.

A seed that fails is run again with
`pytest tests/broker/coordinator/group/consumer -k 'read_by_one[SEED]'`.
"""

from collections.abc import Callable

import pytest

from barnabas_broker.coordinator.group import commits
from barnabas_broker.coordinator.group.consumer import target
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.member import NOTHING
from barnabas_broker.coordinator.group.records import Record
from tests.broker.coordinator.group.consumer.scheduler import World
from tests.broker.coordinator.group.world import STEPS

SEEDS = 150
SOAK_SEEDS = 10_000
PLANTED_SEEDS = 200
"""Among so many a fault is found, if the checks are worth anything."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_partition_is_read_by_one(seed: int) -> None:
    """Whatever is lost, late, doubled, slow or killed, and in whichever protocol members speak."""
    World(seed).rebalance()


def test_the_scheduler_gets_somewhere() -> None:
    """All that makes it hard happens often: the test above is no idle run."""
    met = dict.fromkeys(
        (
            "commits", "compacted", "crashes", "deadlines", "fenced", "late", "lost", "revoked",
            "topics", "became classic", "became consumer",
        ),
        0,
    )  # fmt: skip
    for seed in range(40):
        world = World(seed)
        world.run(STEPS)
        for what in met:
            met[what] += world.met[what]
    assert all(count > 20 for count in met.values()), met


def find(match: str, make: Callable[[int], World] = World) -> None:
    """See that the checks find what is wrong, and say it."""

    def run_all() -> None:
        for seed in range(PLANTED_SEEDS):
            make(seed).rebalance()

    with pytest.raises(AssertionError, match=match):
        run_all()


class Hasty(World):
    """A coordinator that answers what it is asked before that counts."""

    def count(self) -> None:
        counted = self.counted
        super().count()
        if not self.is_well:
            self.counted = min(counted, len(self.log))


class Forgetful(World):
    """A coordinator that does not write all that it acts upon."""

    def append(self, record: Record) -> None:
        if self.random.random() < 0.99:
            super().append(record)


def test_an_answer_that_came_too_soon_is_seen() -> None:
    """A crash takes back what a member was told."""
    find(r"by two|went back|stale epoch", Hasty)


def test_a_missing_record_is_detected() -> None:
    """A coordinator that takes over knows something else than its predecessor did."""
    find("differs when read back", Forgetful)


def test_a_partition_that_is_not_free_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that does not wait for the one who reads what it gives to another."""
    monkeypatch.setattr(ConsumerGroup, "held", lambda _group, _partitions: NOTHING)
    find("by two")


def test_a_commit_of_a_fenced_member_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that takes commits in every epoch."""
    monkeypatch.setattr(commits, "epoch_fault", lambda *_: None)
    find("stale epoch")


def test_an_unassigned_partition_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """An assignor that leaves something out."""
    share = target.target

    def forgets(*args: object, **kwargs: str) -> object:
        whole = share(*args, **kwargs)  # type: ignore[arg-type]
        return {member: frozenset(sorted(some)[1:]) for member, some in whole.items()}

    monkeypatch.setattr(target, "target", forgets)
    find("wanted")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_partition_is_read_by_one_in_many_runs() -> None:
    """The same for as many seeds as are asked for."""
    for seed in range(SEEDS, SOAK_SEEDS):
        World(seed).rebalance()
