"""`python -m tools.testrun` runs the suites; `python -m tools.testrun record` records a run."""

from __future__ import annotations

import argparse
import os
import sys

from tools.testrun.environment import cleaned, is_set
from tools.testrun.plan import named
from tools.testrun.processes import StoppedError, Surroundings, stop_signals
from tools.testrun.record import ROOT
from tools.testrun.runner import SLOWEST, Options, Runner, record_last


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a number from 1 on: {text!r}")
    return int(text)


def main(arguments: list[str]) -> int:
    """Run what the arguments say; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.testrun", description=__doc__)
    parser.add_argument("verb", nargs="?", choices=("run", "record"), default="run")
    parser.add_argument("--suite", default="", help="names of suites, separated by commas")
    parser.add_argument("--strict", action="store_true", help="no second chance")
    parser.add_argument("--record", action="store_true", help="write the run into docs")
    parser.add_argument("--busy", action="store_true", help="take one core meanwhile")
    parser.add_argument("--repeat", type=_positive, default=1, help="runs, up to the first red one")
    parser.add_argument("--slowest", type=int, default=SLOWEST, help="how many tests and files")
    asked = parser.parse_args(arguments)
    if asked.verb == "record":
        print(record_last(ROOT))
        return 0
    options = Options(
        names=named(asked.suite),
        strict=asked.strict,
        record=asked.record,
        ci=is_set(os.environ.get("CI")),
        busy=asked.busy,
        slowest=asked.slowest,
    )
    # Suites and the search for programs see the same environment.
    environment = cleaned(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    around = Surroundings(ROOT, environment, sys.stdout.buffer)
    with stop_signals():
        try:
            for number in range(1, asked.repeat + 1):
                if asked.repeat > 1:
                    print(f"barnabas: run {number} of {asked.repeat}", flush=True)
                if status := Runner(around, options, sys.stdout).run():
                    return status
        except StoppedError as stopped:  # Before the first suite, or after the last.
            return 128 + stopped.number
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
