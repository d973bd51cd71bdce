"""`python -m simulator` runs schedules, and tells what went wrong and how to see it again.

Without arguments: the kept seeds of `corpus.txt`, what one run of CI owes
(docs/contributing/simulation.md), and the planted bugs, each of which must be found. With
`--seed`: that one, with its transcript.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final

from simulator.options import VARIANTS
from simulator.sweep import be_quiet, kept, shortened, sweep
from simulator.world import Outcome, run

TRANSCRIPT_LINES: Final = 80

# What one run of CI owes, in schedules; strict is what a broker does by default.
DUE: Final = {
    "replicated-strict": 1_000,
    "fsync-strict": 1_000,
    "one-power-loss-strict": 1_000,
    "replicated": 300,
    "fsync": 300,
    "replicated-transactions": 60,
    "fsync-transactions": 60,
    "replicated-disk": 120,
    "fsync-disk": 120,
    "one-power-loss-disk": 120,
}


PLANTED: Final = tuple(name for name in VARIANTS if name.startswith("bug-"))
"""Each is to be found within `WITHIN` schedules."""
WITHIN: Final = 3_000


def report(variant: str, outcome: Outcome) -> None:
    """One run that went wrong, and how to see it again."""
    breach = outcome.breach
    assert breach is not None
    print(
        f"{variant} seed {outcome.seed}: {breach.invariant}: {breach.what}, at "
        f"{breach.at_ms / 1000:.3f} s\n  again: make sim SEED={outcome.seed} VARIANT={variant}"
    )


def one(variant: str, seed: int, *, shorten: bool) -> int:
    """One run with its transcript."""
    outcome = shortened(variant, seed) if shorten else run(seed, VARIANTS[variant], transcript=True)
    print(*outcome.transcript[-TRANSCRIPT_LINES:], sep="\n")
    print(f"{variant} seed {seed}: {len(outcome.faults)} faults, {outcome.events} events, ", end="")
    print(f"{outcome.acknowledged} acknowledged, trace {outcome.trace:08x}")
    if outcome.breach is not None:
        report(variant, outcome)
    return outcome.breach is not None


def many(work: Sequence[tuple[str, int]], *, processes: int) -> int:
    """Many runs; 1 if one went wrong."""
    began = time.monotonic()
    counts: dict[str, list[int]] = {}
    wrong = 0
    for variant, outcome in sweep(work, processes=processes):
        count = counts.setdefault(variant, [0, 0, 0, 0])
        count[0] += 1
        count[1] += outcome.breach is not None
        count[2] += outcome.events
        count[3] += outcome.acknowledged
        if outcome.breach is not None:
            wrong += 1
            if wrong <= 10:
                report(variant, outcome)
    for variant, (runs, broken, events, acknowledged) in counts.items():
        print(
            f"{variant}: {runs} schedules, {broken} wrong; {events / runs:.0f} events and "
            f"{acknowledged / runs:.0f} acknowledged records each"
        )
    took = time.monotonic() - began
    print(f"{len(work)} schedules in {took:.0f} s, {len(work) / took * 60:.0f} a minute")
    return 1 if wrong else 0


def find_planted(*, processes: int) -> int:
    """Look for each planted bug; 1 if one was not found."""
    missed = 0
    for variant in PLANTED:
        work = [(variant, seed) for seed in range(WITHIN)]
        runs = sweep(work, processes=processes)
        found = next((outcome for _, outcome in runs if outcome.breach is not None), None)
        if found is None or found.breach is None:
            print(f"{variant}: not found in {WITHIN} schedules")
            missed += 1
        else:
            print(f"{variant}: found by seed {found.seed}: {found.breach.invariant}")
    return 1 if missed else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    parser.add_argument("--variant", choices=sorted(VARIANTS), default=None)
    parser.add_argument("--seed", type=int, default=None, help="run this one, with transcript")
    parser.add_argument("--shorten", action="store_true", help="with as few faults as break it")
    parser.add_argument("--count", type=int, default=None, help="how many, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    # As Ctrl-C does: the processes of a sweep would outlive this one otherwise.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    be_quiet()
    if given.seed is not None:
        return one(given.variant or "replicated", given.seed, shorten=given.shorten)
    if given.variant is not None or given.count is not None:
        due = {given.variant or "replicated": given.count or 1_000}
    else:
        due = DUE
    seeds = range(given.first, given.first + max(due.values()))
    work = kept() if due is DUE else []
    work += [(variant, seed) for variant, count in due.items() for seed in seeds[:count]]
    wrong = many(work, processes=given.processes)
    if due is DUE:
        wrong |= find_planted(processes=given.processes)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
