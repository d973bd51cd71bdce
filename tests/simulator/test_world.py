"""Runs are repeatable from their seed, find planted bugs, and pass without them."""

from dataclasses import replace

import pytest

from barnabas_broker.invariants import violated
from barnabas_broker.replica.isr import InSync
from simulator.options import VARIANTS
from simulator.sweep import kept, shortened
from simulator.world import run

SCHEDULES = 500
"""How many schedules are run until a planted bug is found; `make sim` gives each 3,000."""


@pytest.mark.parametrize(
    "variant", ["replicated", "fsync-strict", "fsync-disk", "fsync-transactions"]
)
def test_a_seed_is_a_run(variant: str) -> None:
    """The same seed makes the same events in the same order; another one makes others."""
    options = replace(VARIANTS[variant], troubled_ms=10_000, healed_ms=10_000)
    first, again, other = run(5, options), run(5, options), run(6, options)
    assert first == again
    assert first.trace != other.trace
    assert first.breach is None
    assert first.acknowledged > 0


@pytest.mark.parametrize(("variant", "seed"), kept())
def test_seeds_of_past_findings_pass(variant: str, seed: int) -> None:
    """The kept seeds."""
    assert run(seed, VARIANTS[variant]).breach is None


@pytest.mark.parametrize(
    "variant",
    [
        "bug-truncate-to-high-watermark",
        "bug-forget-answered-epoch",
        "bug-ignore-version",
        "bug-one-epoch-for-all",
        "bug-forget-orders",
    ],
)
def test_a_planted_bug_is_found(variant: str) -> None:
    """Mistakes of the past; the one that is seen more rarely is left to `make sim`."""
    options = VARIANTS[variant]
    assert any(run(seed, options).breach is not None for seed in range(SCHEDULES))


def test_a_failing_run_is_shrunk_to_few_faults() -> None:
    """A failing run is shortened to the faults that it needs."""
    variant = "bug-truncate-to-high-watermark"
    seed = next(seed for seed in range(SCHEDULES) if run(seed, VARIANTS[variant]).breach)
    whole, short = run(seed, VARIANTS[variant]), shortened(variant, seed)
    assert short.breach is not None
    assert 0 < len(short.faults) < len(whole.faults)
    assert "BREACH" in short.transcript[-1]


@pytest.mark.parametrize("swallowed", [True, False])
def test_a_violated_invariant_is_a_breach(monkeypatch: pytest.MonkeyPatch, swallowed: bool) -> None:
    """An assertion of a core ends the run with its seed, also where an `except` swallows it."""

    def become(*_: object, **__: object) -> bool:
        try:
            raise AssertionError(violated("leaders lead"))
        except AssertionError:
            if swallowed:
                return False
            raise

    monkeypatch.setattr(InSync, "become", become)
    breach = run(1, VARIANTS["replicated"]).breach
    assert breach is not None
    assert (breach.invariant, breach.what) == ("assertion", "leaders lead")


def test_losses_are_counted_where_nothing_is_promised() -> None:
    """Power losses without fsync lose acknowledged records, as they do in Apache Kafka."""
    found = {
        outcome.breach.invariant
        for outcome in (run(seed, VARIANTS["one-power-loss"]) for seed in range(40))
        if outcome.breach is not None
    }
    assert found == {"acknowledged is never lost"}
