"""``python -m benchmarks.security``: TLS, SCRAM and ACLs, beside Apache Kafka and beside without.

Two comparisons of one broker each: clients over SASL_SSL and new connections beside Apache Kafka;
and plain clients of a broker with a thousand ACLs beside one without an authorizer. A third, which
has to be asked for, is the second of Apache Kafka.
"""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import click

from benchmarks import report
from benchmarks.cases.security import AUTHORIZED, CONNECTED
from benchmarks.harness import AFTER_ALL_RUNS, Harness
from benchmarks.model import Case, Run, Scale
from benchmarks.secured import Security
from benchmarks.targets import Apache, Barnabas, Target
from benchmarks.workers.raw import allow_many_files
from tests.oracle.apache import DEFAULT_VERSION

ACLS: Final = 1000
COMPARISONS: Final = ("connections", "acls", "apache-acls")
Arm = Callable[..., Target]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--runs", default=3, show_default=True, help="Counted runs of each case and broker.")
@click.option("--seconds", "duration_s", type=float, help="Of cases that are bounded by time; 2.")
@click.option("--quick", is_flag=True, help="One small run of each: shows that it works, no more.")
@click.option("--only", type=click.Choice(COMPARISONS), help="This comparison; else the first two.")
@click.option("--cases", default="", help="Names of the cases to run, comma-separated; all.")
@click.option("--heap", default="1G", show_default=True, help="Heap of Apache Kafka's JVM.")
@click.option(
    "--barnabas",
    "program",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The `barnabas` to measure; the one beside this Python.",
)
@click.option("--output", type=click.Path(path_type=Path), help="Result directory.")
def main(
    *,
    runs: int,
    duration_s: float | None,
    quick: bool,
    only: str | None,
    cases: str,
    heap: str,
    program: Path | None,
    output: Path | None,
) -> None:
    """Measure TLS, SCRAM and ACLs."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    allow_many_files()
    scale = Scale(quick=quick, duration_s=duration_s)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="barnabas-security-") as directory:
        root = Path(directory)
        apache = partial(Apache, root, version=DEFAULT_VERSION, heap=heap)
        barnabas = partial(Barnabas, root, command=program)
        for name in COMPARISONS[:2] if only is None else (only,):
            chosen = _chosen(AUTHORIZED if "acls" in name else CONNECTED, cases)
            if not chosen:
                continue
            arms = {
                "connections": lambda: _beside_apache(root, apache, barnabas),
                "acls": lambda: _with_and_without(root, "barnabas", barnabas),
                "apache-acls": lambda: _with_and_without(root, "apache", apache),
            }[name]()
            failed += _compare(
                name, arms, chosen, runs=1 if quick else runs, scale=scale, output=output
            )
    sys.exit(1 if failed else 0)


def _beside_apache(root: Path, apache: Arm, barnabas: Arm) -> list[Target]:
    targets = [apache(), barnabas()]
    for target in targets:
        target.setup = Security(root / f"{target.name}-keys")
    return targets


def _with_and_without(root: Path, name: str, arm: Arm) -> list[Target]:
    targets = [arm(), arm(name=f"{name}-acls")]
    for target, acls in zip(targets, (0, ACLS), strict=True):
        target.setup = Security(root / f"{target.name}-of-{acls}-keys", acls=acls)
    targets[1].label = f"{targets[0].label} with {ACLS:,} ACLs"
    return targets


def _chosen(known: Sequence[Case], names: str) -> list[Case]:
    return [case for case in known if not names or case.name in names.split(",")]


def _compare(
    name: str,
    targets: Sequence[Target],
    cases: Sequence[Case],
    *,
    runs: int,
    scale: Scale,
    output: Path | None,
) -> int:
    """Measure some arms and write what came of it; returns how many runs failed."""
    began = datetime.now(UTC)
    with ExitStack() as stack:
        for target in targets:
            stack.enter_context(target)
        harness = Harness(
            targets=targets,
            cases=cases,
            rounds=runs,
            scale=scale,
            on_begin=lambda *_: None,
            on_run=_show,
        )
        complete = True
        try:
            harness.execute()
        except KeyboardInterrupt:
            complete = False
    counted = [run for run in harness.runs if run.case != AFTER_ALL_RUNS]
    outcome = report.Outcome(
        command=shlex.join(["python", "-m", "benchmarks.security", *sys.argv[1:]]),
        quick=scale.quick,
        began=f"{began:%Y-%m-%d %H:%M:%S} UTC",
        ended=f"{datetime.now(UTC):%H:%M:%S} UTC{'' if complete else ' (interrupted)'}",
        targets=[(target.name, target.label) for target in targets],
        descriptions=harness.descriptions,
        machine=report.machine_description(targets[0].root),
        limits=[],
        runs=counted,
    )
    if output is None:
        click.echo(report.markdown(outcome))
    else:
        report.write(outcome, output / name)
    if not complete:
        sys.exit(130)
    return sum(run.error is not None for run in counted)


def _show(run: Run) -> None:
    where = f"{run.case}, {run.target}, {f'run {run.round}' if run.round > 0 else 'warm-up'}"
    if run.error:
        click.echo(f"{where} failed: {run.error[:300]}", err=True)
    for sample in run.samples:
        figures = ", ".join(f"{report.number(it)} {of.value}" for of, it in sample.values.items())
        click.echo(f"{where}: {sample.row}: {figures}", err=True)


if __name__ == "__main__":
    main()
