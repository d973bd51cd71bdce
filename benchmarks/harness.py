"""Runs cases on targets, interleaved, and goes on when one fails.

Every case first runs on each target uncounted, mostly once, which warms the Java broker's compiler
and both page caches; then it runs the wanted number of rounds, with the order of the targets turned
round each time, so that drift of the machine falls on both.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from benchmarks.errors import BenchmarkError
from benchmarks.metering import memory_mib
from benchmarks.model import Case, Metric, Run, Sample, Scale
from benchmarks.targets import Target
from tests.oracle.apache import OracleError

AFTER_ALL_RUNS = "after all runs"

FAILURES = (
    BenchmarkError,
    KafkaException,
    OracleError,
    OSError,
    RuntimeError,
    ValueError,
    KeyError,
    subprocess.SubprocessError,
)
"""What a case may end with and the others go on; anything else is our own mistake."""


@dataclass(slots=True)
class Harness:
    """One benchmark: targets, cases, and the runs made so far."""

    targets: Sequence[Target]
    cases: Sequence[Case]
    rounds: int
    scale: Scale
    on_begin: Callable[[Case, Target, int], None]
    on_run: Callable[[Run], None]
    runs: list[Run] = field(default_factory=list)
    descriptions: dict[str, dict[str, str]] = field(default_factory=dict)
    _dead: set[str] = field(default_factory=set)

    def execute(self) -> None:
        """Run everything; `runs` grows as it goes, so an interrupt loses only the run under way."""
        fresh = [case for case in self.cases if case.fresh]
        lasting = [case for case in self.cases if not case.fresh]
        for case in fresh:
            self._run_case(case)
        if not lasting:
            return
        for target in self.targets:
            self._start(target)
        for case in lasting:
            self._run_case(case)
        self._memory_after_all()

    def _start(self, target: Target) -> None:
        """Start the long-running broker; one that does not start fails only its own cases."""
        try:
            target.start()
            self.descriptions[target.name] = target.describe()
        except FAILURES as failure:
            self._dead.add(target.name)
            error = f"{type(failure).__name__}: {failure}"
            run = Run(case="start", target=target.name, round=1, samples=(), error=error)
            self.runs.append(run)
            self.on_run(run)

    @property
    def total(self) -> int:
        """How many runs there will be, warm-ups included."""
        return sum(len(list(self._schedule(case))) for case in self.cases)

    def _schedule(self, case: Case) -> Iterator[tuple[int, Target]]:
        # A start-up is measured cold, and a quick run is not about figures.
        first = 1 if case.fresh or self.scale.quick else 1 - case.warm_ups
        for number in range(first, self.rounds + 1):
            order = self.targets if number % 2 else tuple(reversed(self.targets))
            for target in order:
                yield number, target

    def _run_case(self, case: Case) -> None:
        for number, target in self._schedule(case):
            self.on_begin(case, target, number)
            run = self._run(case, target, number)
            self.runs.append(run)
            self.on_run(run)

    def _run(self, case: Case, target: Target, number: int) -> Run:
        samples: list[Sample] = []
        error = None
        begin = time.perf_counter()
        try:
            if not case.fresh and target.name in self._dead:
                raise BenchmarkError(f"{target.label} did not start")
            if not case.fresh and not target.alive():
                target.start()
            samples = case.run(target, self.scale)
        except FAILURES as failure:
            error = f"{type(failure).__name__}: {failure}"
        return Run(
            case=case.name,
            target=target.name,
            round=number,
            samples=tuple(samples),
            seconds=time.perf_counter() - begin,
            error=error,
        )

    def _memory_after_all(self) -> None:
        for target in self.targets:
            if target.alive():
                rss, peak = memory_mib(target.broker.pid)
                sample = Sample(
                    row=f"memory, {AFTER_ALL_RUNS}",
                    values={Metric.RSS: rss},
                    detail={"peak_mib": peak},
                )
                self.runs.append(
                    Run(case=AFTER_ALL_RUNS, target=target.name, round=1, samples=(sample,))
                )
