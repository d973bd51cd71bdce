"""The transaction core under a scheduler that does the worst it may: see `scheduler`.

A seed that fails is run again with
`pytest tests/broker/coordinator/transaction -k 'torn[PROTOCOL-SEED]'`.
"""

import pytest

from tests.broker.coordinator.transaction.scheduler import World

SEEDS = 150
SOAK_SEEDS = 10_000
PLANTED_SEEDS = 500
"""Among so many a fault is found, if the checks are worth anything."""
PROTOCOLS = (0, 2)


def run(seed: int, protocol: int, *, late_ends: bool) -> World:
    """A world to its end; what was torn, lost or doubled is an AssertionError."""
    world = World(seed, protocol=protocol, late_ends=late_ends)
    try:
        world.run(400)
        world.heal()
        world.check()
    except AssertionError as error:
        error.add_note(f"seed {seed} of protocol {protocol}")
        raise
    return world


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_transaction_is_torn(protocol: int, seed: int) -> None:
    """Whatever is lost, late, doubled, slow or killed: all of a transaction is seen, or nothing.

    In the second protocol also where the end of one transaction arrives within the next.
    """
    run(seed, protocol, late_ends=protocol == 2)


def test_late_ends_tear_transactions_of_the_first_protocol() -> None:
    """Which is why there is a second one; and the scheduler sees it."""

    def run_all() -> None:
        for seed in range(PLANTED_SEEDS):
            run(seed, 0, late_ends=True)

    with pytest.raises(AssertionError, match=r"torn|lost|not undone"):
        run_all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_scheduler_gets_somewhere(protocol: int) -> None:
    """Commits, aborts, crashes, fenced producers, timeouts: the tests above are no idle runs."""
    met = dict.fromkeys(("committed", "aborted", "crashes", "fenced", "timed out"), 0)
    if protocol:
        met |= {"shut out": 0, "rotated": 0}
    for seed in range(60):
        world = World(seed, protocol=protocol)
        world.run(400)
        for what in met:
            met[what] += world.met[what]
    assert all(count > 5 for count in met.values()), met


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_transaction_is_torn_in_many_runs(protocol: int) -> None:
    """The same for as many seeds as are asked for."""
    for seed in range(SEEDS, SOAK_SEEDS):
        run(seed, protocol, late_ends=protocol == 2)
