"""The group core under a scheduler that does the worst it may: see `scheduler`.

A seed that fails is run again with `pytest tests/broker/coordinator/group -k 'right[SEED]'`.
"""

import pytest

from tests.broker.coordinator.group.scheduler import World
from tests.broker.coordinator.group.world import STEPS

SEEDS = 300
SOAK_SEEDS = 10_000
PLANTED_SEEDS = 1_000
"""Among so many a fault is found, if the checks are worth anything."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_members_share_and_remember_right(seed: int) -> None:
    """Whatever is lost, late, doubled, slow or killed: no share twice, and no offset goes back."""
    World(seed).rebalance()


def test_the_scheduler_gets_somewhere() -> None:
    """Shares, commits, crashes, deadlines, lost members: the test above is no idle run."""
    met = dict.fromkeys(("shares", "commits", "crashes", "deadlines", "lost", "late"), 0)
    for seed in range(30):
        world = World(seed)
        world.run(STEPS)
        for what in met:
            met[what] += world.met[what]
    assert all(count > 100 for count in met.values()), met


class Hasty(World):
    """A coordinator that answers what it is asked before that counts."""

    def count(self) -> None:
        counted = self.counted
        super().count()
        if not self.is_well:
            self.counted = counted


def test_the_scheduler_sees_an_answer_that_came_too_soon() -> None:
    """A crash takes back what a member was told."""

    def run_all() -> None:
        for seed in range(PLANTED_SEEDS):
            Hasty(seed).rebalance()

    with pytest.raises(AssertionError, match=r"went back|shared|two shares"):
        run_all()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_members_share_and_remember_right_in_many_runs() -> None:
    """The same for as many seeds as are asked for."""
    for seed in range(SEEDS, SOAK_SEEDS):
        World(seed).rebalance()
