"""Many runs: side by side, the kept ones, and one run with as few faults as still break it."""

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from simulator.options import VARIANTS
from simulator.world import Outcome, run

CORPUS: Final = Path(__file__).parent / "corpus.txt"
CHUNK: Final = 25
"""How many runs a process is given at a time."""


def kept() -> list[tuple[str, int]]:
    """The seeds that once went wrong: (variant, seed)."""
    found = []
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        words = line.split("#")[0].split()
        if words:
            found.append((words[0], int(words[1])))
    return found


def be_quiet() -> None:
    """Have logs tell nothing: each crash would be told of, and there are thousands."""
    logging.getLogger("barnabas_broker.log").setLevel(logging.CRITICAL)


def _run_chunk(work: Sequence[tuple[str, int]]) -> list[tuple[str, Outcome]]:
    return [(variant, run(seed, VARIANTS[variant])) for variant, seed in work]


def sweep(work: Sequence[tuple[str, int]], *, processes: int) -> Iterator[tuple[str, Outcome]]:
    """The outcome of each (variant, seed), as they come."""
    chunks = [work[start : start + CHUNK] for start in range(0, len(work), CHUNK)]
    pool = ProcessPoolExecutor(processes, initializer=be_quiet)
    try:
        for outcomes in pool.map(_run_chunk, chunks):
            yield from outcomes
    finally:
        pool.shutdown(cancel_futures=True)


def shortened(variant: str, seed: int) -> Outcome:
    """The same run with as few of its faults as still break it."""
    options = VARIANTS[variant]
    worst = run(seed, options)
    faults = list(worst.faults)
    position = 0
    while position < len(faults):
        fewer = faults[:position] + faults[position + 1 :]
        outcome = run(seed, options, faults=fewer)
        if outcome.breach is not None:
            faults = fewer
        else:
            position += 1
    return run(seed, options, faults=faults, transcript=True)
