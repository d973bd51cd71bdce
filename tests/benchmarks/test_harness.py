"""Rounds are interleaved, warm-ups stay uncounted, and a failing case does not stop the others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

import pytest

from benchmarks.clients import producer_performance_report, run_worker
from benchmarks.errors import BenchmarkError
from benchmarks.harness import Harness
from benchmarks.model import Case, Metric, Run, Sample, Scale
from benchmarks.report import lines
from benchmarks.targets import Broker, Target


class OwnProcess:
    """Stands for a broker: the process of the test itself, which has a memory to be read."""

    bootstrap = "127.0.0.1:0"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.settings: dict[str, str] = {}
        self.running = False

    @property
    def pid(self) -> int:
        """This process."""
        return os.getpid()

    def start(self) -> Self:
        """Be there."""
        self.running = True
        return self

    def prepare(self) -> None:
        """Nothing beside."""

    def launch(self) -> None:
        """Be there."""
        self.running = True

    def stop(self) -> None:
        """Be gone."""
        self.running = False


class Arm(Target):
    """A target whose brokers are no processes."""

    def describe(self) -> dict[str, str]:
        """Nothing to say."""
        return {"version": "0"}

    def _new(self, directory: Path) -> Broker:
        return OwnProcess(directory)


class Stillborn(Arm):
    """A target whose broker does not come up."""

    def start(self) -> None:
        """Fail."""
        raise BenchmarkError("port in use")


def run_harness(root: Path, cases: list[Case], *, rounds: int, quick: bool = False) -> list[Run]:
    """Execute `cases` on two arms and return the runs."""
    arms = [Arm("a", "A", root), Arm("b", "B", root)]
    announced: list[str] = []
    harness = Harness(
        targets=arms,
        cases=cases,
        rounds=rounds,
        scale=Scale(quick=quick),
        on_begin=lambda case, _target, _number: announced.append(case.name),
        on_run=lambda _run: None,
    )
    harness.execute()
    assert len(announced) == harness.total
    for arm in arms:
        arm.stop()
    return harness.runs


def good(target: Target, _scale: Scale) -> list[Sample]:
    """A case that measures nothing much."""
    return [Sample(row="row", values={Metric.MB_RATE: 1.0}, detail={"on": target.name})]


def bad(_target: Target, _scale: Scale) -> list[Sample]:
    """A case that cannot be measured."""
    raise BenchmarkError("no luck")


def dying(target: Target, scale: Scale) -> list[Sample]:
    """A case that takes its broker down with it."""
    target.broker.stop()
    return bad(target, scale)


def test_order_of_targets_turns_round_and_round_zero_warms_up(tmp_path: Path) -> None:
    """Each round has the opposite order to the one before, beginning with an uncounted one."""
    runs = run_harness(tmp_path, [Case("good", "Good", good)], rounds=3)
    measured = [(run.round, run.target) for run in runs if run.case == "good"]
    pairs = zip([0, 0, 1, 1, 2, 2, 3, 3], "baabbaab", strict=True)
    assert measured == list(pairs)


def test_a_case_may_be_warmed_up_for_longer(tmp_path: Path) -> None:
    """Rounds below 1 are not counted, however many; the order turns round in them too."""
    runs = run_harness(tmp_path, [Case("good", "Good", good, warm_ups=3)], rounds=1)
    measured = [(run.round, run.target) for run in runs if run.case == "good"]
    pairs = zip([-2, -2, -1, -1, 0, 0, 1, 1], "baabbaab", strict=True)
    assert measured == list(pairs)
    (line,) = [line for line in lines(runs) if line.row == "row"]
    assert line.values == {"a": [1.0], "b": [1.0]}


def test_quick_run_and_fresh_cases_have_no_warm_up(tmp_path: Path) -> None:
    """A start-up is measured cold; a quick run saves the time."""
    fresh = run_harness(tmp_path, [Case("fresh", "Fresh", good, fresh=True)], rounds=1)
    quick = run_harness(tmp_path, [Case("good", "Good", good)], rounds=1, quick=True)
    assert {run.round for run in [*fresh, *quick]} == {1}


def test_failure_is_recorded_and_the_other_cases_go_on(tmp_path: Path) -> None:
    """The failing run keeps its reason; a broker that died with it is started anew."""
    cases = [Case("dying", "Dying", dying), Case("bad", "Bad", bad), Case("good", "Good", good)]
    runs = run_harness(tmp_path, cases, rounds=1, quick=True)
    errors = {run.case: run.error for run in runs}
    assert errors["dying"] == errors["bad"] == "BenchmarkError: no luck"
    assert errors["good"] is None


def test_broker_that_does_not_start_fails_only_its_own_cases(tmp_path: Path) -> None:
    """Its runs say so at once instead of waiting for it again and again; the other arm measures."""
    arms = [Stillborn("a", "A", tmp_path), Arm("b", "B", tmp_path)]
    harness = Harness(
        targets=arms,
        cases=[Case("good", "Good", good)],
        rounds=2,
        scale=Scale(quick=False),
        on_begin=lambda _case, _target, _number: None,
        on_run=lambda _run: None,
    )
    harness.execute()
    assert {run.error for run in harness.runs if run.target == "b"} == {None}
    assert {run.error for run in harness.runs if run.target == "a"} == {
        "BenchmarkError: port in use",
        "BenchmarkError: A did not start",
    }


def test_files_of_brokers_are_gone_afterwards(tmp_path: Path) -> None:
    """Stopping a target removes what its brokers wrote."""
    run_harness(tmp_path, [Case("good", "Good", good)], rounds=1, quick=True)
    assert list(tmp_path.iterdir()) == []


SUMMARY = (
    "1000 records sent, 900.0 records/sec (0.2 MB/sec), 1.0 ms avg latency, 2.0 ms max latency.\n"
    "5000 records sent, 1234.5 records/sec (1.21 MB/sec), 12.30 ms avg latency, "
    "45.00 ms max latency, 11 ms 50th, 22 ms 95th, 33 ms 99th, 44 ms 99.9th.\n"
)


def test_last_line_of_producer_performance_counts() -> None:
    """The lines of progress before it are not the summary."""
    summary = producer_performance_report(SUMMARY)
    assert summary["records_per_s"] == 1234.5
    assert (summary["p50"], summary["p99"]) == (11, 33)


def test_output_without_a_summary_is_an_error() -> None:
    """A tool that ends without having measured anything is not taken for a slow one."""
    with pytest.raises(BenchmarkError, match="no summary"):
        producer_performance_report("WARN cannot connect\n")


def test_worker_that_cannot_connect_says_so(tmp_path: Path) -> None:
    """The error carries the worker's own last words instead of a time-out."""
    spec = {"mode": "fetch", "topic": "none", "max_bytes": 1, "batch_bytes": 1}
    with pytest.raises(BenchmarkError, match="refused"):
        run_worker("raw", {**spec, "batch_records": 1, "end_offset": 1}, OwnProcess(tmp_path))
