"""``python -m benchmarks``: measure Barnabas beside Apache Kafka and write a report.

Everything started here is stopped here by its process id: at the end, on a failure, on Ctrl-C and
on SIGTERM. What has been measured until then is reported all the same.
"""

from __future__ import annotations

import resource
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import limits, plot, report
from benchmarks.cases import ALL
from benchmarks.harness import Harness
from benchmarks.model import Case, Run, Scale
from benchmarks.targets import Apache, Barnabas, Target
from tests.oracle.apache import DEFAULT_VERSION

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
RESULTS: Final = Path(__file__).with_name("results")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--runs", default=5, show_default=True, help="Counted runs of each case and broker.")
@click.option("--cases", default="", help="Names of the cases to run, comma-separated; all.")
@click.option("--list", "list_cases", is_flag=True, help="List the cases and stop.")
@click.option("--quick", is_flag=True, help="One small run of each: shows that it works, no more.")
@click.option(
    "--only", type=click.Choice(["apache", "barnabas"]), help="Measure this broker alone."
)
@click.option(
    "--targets",
    "target_names",
    default="apache,barnabas",
    show_default=True,
    help="Brokers to compare, the first being the baseline; apache,apache shows the noise.",
)
@click.option("--apache-version", default=DEFAULT_VERSION, show_default=True)
@click.option("--heap", default="1G", show_default=True, help="Heap of Apache Kafka's JVM.")
@click.option(
    "--barnabas",
    "barnabas_command",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The `barnabas` to measure, and with it its interpreter; the one beside this Python.",
)
@click.option("--name", default="", help="What the result directory's name says after the date.")
@click.option("--output", type=click.Path(path_type=Path), help="Result directory.")
@click.option(
    "--data", type=click.Path(path_type=Path), help="Where the brokers' data go, for the run only."
)
def main(
    *,
    runs: int,
    cases: str,
    list_cases: bool,
    quick: bool,
    only: str | None,
    target_names: str,
    apache_version: str,
    heap: str,
    barnabas_command: Path | None,
    name: str,
    output: Path | None,
    data: Path | None,
) -> None:
    """Measure Barnabas beside Apache Kafka: same machine, same clients, interleaved runs."""
    console = Console(stderr=True)
    if list_cases:
        for case in ALL:
            click.echo(f"{case.name:22} {case.title}")
        return
    chosen = _chosen(cases)
    wanted = [only] if only else target_names.split(",")
    began = datetime.now(UTC)
    what = name or ("quick" if quick else "-vs-".join(dict.fromkeys(wanted)))
    directory = output or RESULTS / f"{began:%Y-%m-%d}-{what}"
    for number in STOPPING:
        signal.signal(number, _interrupt)
    _allow_many_files()
    scale = Scale(quick=quick)
    with ExitStack() as stack:
        root = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-benchmark-", dir=data))
        )
        targets = _targets(
            wanted,
            apache=partial(Apache, root, version=apache_version, heap=heap),
            barnabas=partial(Barnabas, root, command=barnabas_command),
        )
        for target in targets:
            stack.enter_context(target)
        machine = report.machine_description(root)
        console.print("Physical limits of this machine …")
        physical = limits.measure(root, scale)
        harness, complete = _execute(console, targets, chosen, 1 if quick else runs, scale)
    outcome = report.Outcome(
        command=shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        quick=quick,
        began=f"{began:%Y-%m-%d %H:%M:%S} UTC",
        ended=f"{datetime.now(UTC):%H:%M:%S} UTC{'' if complete else ' (interrupted)'}",
        targets=[(target.name, target.label) for target in targets],
        descriptions=harness.descriptions,
        machine=machine,
        limits=physical,
        runs=harness.runs,
    )
    report.write(outcome, directory)
    plot.write(outcome, directory)
    console.print(f"Written to {directory}")
    failed = sum(run.error is not None for run in harness.runs)
    if failed or not harness.runs:
        console.print(f"[red]{failed} of {len(harness.runs)} runs failed; see the report.[/red]")
        sys.exit(1)
    if not complete:
        sys.exit(130)


def _execute(
    console: Console, targets: Sequence[Target], cases: Sequence[Case], rounds: int, scale: Scale
) -> tuple[Harness, bool]:
    """Run it all under a progress bar; returns what was run and whether nobody interrupted it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("starting")
        harness = Harness(
            targets=targets,
            cases=cases,
            rounds=rounds,
            scale=scale,
            on_begin=lambda case, target, number: progress.update(
                task, description=f"{case.name} on {target.label}, {_round(number)}"
            ),
            on_run=_reporter(progress, lambda: progress.advance(task)),
        )
        progress.update(task, total=harness.total)
        try:
            harness.execute()
        except KeyboardInterrupt:
            progress.console.print("[yellow]Interrupted: reporting what there is.[/yellow]")
            return harness, False
    return harness, True


def _reporter(progress: Progress, advance: Callable[[], None]) -> Callable[[Run], None]:
    def show(run: Run) -> None:
        advance()
        where = f"{run.case:20} {run.target:9} {_round(run.round):8} {run.seconds:5.1f} s "
        if run.error:
            progress.console.print(
                f"{where} [red]failed:[/red] {run.error[:300]}", highlight=False, soft_wrap=True
            )
        for sample in run.samples:
            figures = "  ".join(
                f"{report.number(value)} {metric.value}" for metric, value in sample.values.items()
            )
            progress.console.print(
                f"{where} {sample.row}: {figures}", highlight=False, soft_wrap=True
            )

    return show


def _round(number: int) -> str:
    return f"run {number}" if number > 0 else "warm-up"


def _chosen(names: str) -> list[Case]:
    if not names:
        return list(ALL)
    by_name = {case.name: case for case in ALL}
    unknown = [name for name in names.split(",") if name not in by_name]
    if unknown:
        raise click.BadParameter(f"unknown: {', '.join(unknown)}; known: {', '.join(by_name)}")
    return [by_name[name] for name in names.split(",")]


def _targets(
    wanted: Sequence[str], *, apache: Callable[..., Target], barnabas: Callable[..., Target]
) -> list[Target]:
    """The arms in order; one that is named twice gets a number."""
    targets: list[Target] = []
    for position, kind in enumerate(wanted):
        again = wanted[:position].count(kind)
        name = kind if not again else f"{kind}-{again + 1}"
        if kind == "apache":
            targets.append(apache(name=name))
        elif kind == "barnabas":
            targets.append(barnabas(name=name))
        else:
            raise click.BadParameter(f"no such broker: {kind}")
    return targets


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End the runs; further signals do not disturb the stopping of what was started."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _allow_many_files() -> None:
    """Raise the limit of open files, for us and what we start: 1,000 partitions need it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    main()
