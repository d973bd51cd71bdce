"""The group core under a scheduler that does the worst it may: see `scheduler`.

A seed that fails is run again with `pytest tests/broker/coordinator/group -k 'right[SEED]'`.
"""

import pytest

from tests.broker.coordinator.group.scheduler import World

SEEDS = 1_000
SOAK_SEEDS = 10_000


def run(seed: int) -> World:
    """A world to its end; what was shared, lost or set back is an AssertionError."""
    world = World(seed)
    try:
        world.run(400)
        world.heal()
        world.check()
    except AssertionError as error:
        error.add_note(f"seed {seed}")
        raise
    return world


@pytest.mark.parametrize("seed", range(SEEDS))
def test_members_share_and_remember_right(seed: int) -> None:
    """Whatever is lost, late, doubled, slow or killed: no share twice, and no offset goes back."""
    run(seed)


def test_the_scheduler_gets_somewhere() -> None:
    """Shares, commits, crashes, deadlines, lost members: the test above is no idle run."""
    met = dict.fromkeys(("shares", "commits", "crashes", "deadlines", "lost", "late"), 0)
    for seed in range(30):
        world = World(seed)
        world.run(400)
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
        for seed in range(SEEDS):
            world = Hasty(seed)
            world.run(400)
            world.heal()
            world.check()

    with pytest.raises(AssertionError, match=r"went back|shared|two shares"):
        run_all()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_members_share_and_remember_right_in_many_runs() -> None:
    """The same for as many seeds as there is patience for."""
    for seed in range(SEEDS, SOAK_SEEDS):
        run(seed)
