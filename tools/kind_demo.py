"""`make kind-demo`: from nothing to Kafka on Kubernetes, and this machine's data through it.

Builds the images, makes a kind cluster of 1 + 3 nodes in three zones, installs the operator's chart
and applies manifests/examples/quickstart.yaml. Sends what `demo_input` finds from this machine and
from a pod, reads it on the other side and in the pipeline's files, compares every byte, and reports
how long each step took and how much memory each pod has. The exit code is 1 when anything differs.
KEEP=1 leaves the cluster running and says how to use it; `make kind-down` removes it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table

from e2e import images, kafka
from e2e.cluster import CannotRunKindError, Cluster, check_kind_can_run
from e2e.commands import CommandError
from e2e.quickstart import FILE, MAIN, Quickstart, install_with_helm
from e2e.wait import NotInTimeError
from tests.waiting import SETTLE, seconds
from tools import demo_input, kind_needs

CLUSTER: Final = Cluster("barnabas")
# What a broker takes with its default settings, less room for key and headers.
RECORD_BYTES_MAX: Final = 900_000
KINDS: Final = "kafkaclusters,kafkatopics,kafkausers,kafkapipelines"


class DemoError(Exception):
    """What came out is not what went in."""


@dataclass(slots=True)
class Report:
    """The steps so far with their seconds, and the figures that are asked for."""

    console: Console
    steps: list[tuple[str, float]] = field(default_factory=list)
    sizes: list[images.Image] = field(default_factory=list)

    @contextmanager
    def step(self, title: str, *, quiet: bool = False) -> Iterator[None]:
        """A step: shown while it runs (unless it has a bar of its own), timed, and ticked off."""
        began = time.monotonic()
        with nullcontext() if quiet else self.console.status(title):
            yield
        self.steps.append((title, time.monotonic() - began))
        self.console.print(f"[green]✓[/] {title} [dim]{self.steps[-1][1]:.1f} s[/]")


def main(arguments: Sequence[str]) -> int:
    """Run the demonstration, or with `down` remove what it left; returns the exit status."""
    console = Console(highlight=False)
    try:
        if list(arguments) == ["down"]:
            CLUSTER.delete()
            return 0
        return _run(console)
    except (CannotRunKindError, CommandError, DemoError, NotInTimeError) as error:
        console.print("[bold red]The demonstration failed:[/]")
        console.print(str(error), markup=False)
    except kafka.TransferError as error:
        console.print(f"[bold red]The demonstration failed:[/] {error}")
    except KeyboardInterrupt:
        console.print("Interrupted.")
    return 1


def _run(console: Console) -> int:
    keep = os.environ.get("KEEP", "") not in ("", "0")
    kind_needs.install_missing()
    check_kind_can_run()
    if CLUSTER.exists():
        console.print("The cluster of an earlier demonstration is there: `make kind-down` first.")
        return 1
    report = Report(console)
    finished = False
    try:
        _demonstrate(report)
        finished = True
    finally:
        if not (keep and finished):
            with console.status("removing the cluster"):
                CLUSTER.delete()
    _say_goodbye(console, keep=keep)
    return 0


def _demonstrate(report: Report) -> None:
    """Every step, from the images to the tables."""
    quickstart = _install(report)
    began = time.monotonic()
    with report.step("apply the quickstart: ZooKeeper, a broker, two topics, a pipeline"):
        quickstart.apply()
    with report.step("  ZooKeeper and broker are ready"):
        quickstart.wait_ready("kafkacluster/quickstart")
    with report.step("  topics are ready"):
        quickstart.wait_ready("kafkatopic/packages")
        quickstart.wait_ready("kafkatopic/files")
    with report.step("  the first record is in and acknowledged"):
        quickstart.send("files", [(b"first", b"record")])
    first_s = time.monotonic() - began
    with report.step("  the pipeline is ready"):
        quickstart.wait_ready("kafkapipeline/packages-to-parquet")
    _stream(report, quickstart)
    report.console.print()
    listed = CLUSTER.kubectl("get", KINDS, "-n", MAIN)
    report.console.print(f"$ kubectl get {KINDS}\n\n{listed}", markup=False, soft_wrap=True)
    report.console.print(_steps_table(report, first_s))
    report.console.print()
    memory = CLUSTER.working_sets(MAIN)
    del memory["client"]
    report.console.print(_memory_table(memory))


def _install(report: Report) -> Quickstart:
    """Images, cluster, operator."""
    for target in images.TARGETS:
        with report.step(f"build the image {images.name(target)}"):
            report.sizes.append(images.build(target))
    with report.step("create a kind cluster of 1 + 3 nodes"):
        CLUSTER.create()
    with report.step("load the images onto the nodes"):
        CLUSTER.load(*images.names())
    with report.step("install the operator with Helm"):
        install_with_helm(CLUSTER)
    return Quickstart(CLUSTER)


def _stream(report: Report, quickstart: Quickstart) -> None:
    """This machine's data in and out, from both sides, and compared."""
    packages = list(demo_input.packages()) or list(demo_input.tables())
    files = [each for each in demo_input.sources() if len(each[1]) <= RECORD_BYTES_MAX]
    title = f"send {_amount(packages)} from this machine, and read them in a pod"
    with report.step(title, quiet=True):
        quickstart.start_client_pod()
        with _bar(report.console, "send", packages) as advance:
            client, limit_s = quickstart.client(), seconds(SETTLE)
            sent = kafka.send(client, "packages", packages, advance, limit_s=limit_s)
        compare("packages", quickstart.read_in_pod("packages"), packages)
    title = f"send {_amount(files)} from a pod, and read them on this machine"
    with report.step(title, quiet=True):
        quickstart.send_in_pod("files", files)
        with _bar(report.console, "read", files) as advance:
            found = kafka.read(client, "files", advance, limit_s=seconds(SETTLE))
        compare("files", list(found.values()), [*files, (b"first", b"record")])
    with report.step("the pipeline has written the packages to Parquet files"):
        quickstart.pipeline.wait_until_landed(len(sent))
        with tempfile.TemporaryDirectory(prefix="barnabas-kind-") as directory:
            landed = quickstart.pipeline.landed(Path(directory))
    if landed != sent:
        raise DemoError("the pipeline's files differ from what was sent")
    report.console.print("Every byte is the same: in the pod, on this machine, and in the files.")


def compare(topic: str, found: list[kafka.Record], expected: list[kafka.Record]) -> None:
    """Raise DemoError unless the same records are in both, in whatever order."""
    if sorted(found) == sorted(expected):
        return
    missing = set(expected) - set(found)
    strange = set(found) - set(expected)
    raise DemoError(
        f"{topic}: {len(expected)} records sent, {len(found)} read,"
        f" {len(missing)} missing, {len(strange)} that were not sent"
    )


@contextmanager
def _bar(
    console: Console, verb: str, records: list[kafka.Record]
) -> Iterator[Callable[[int], None]]:
    """A bar, and the function that moves it by so many bytes."""
    columns = (TextColumn("  {task.description}"), BarColumn(bar_width=24), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(verb, total=_size(records))
        yield lambda size: progress.advance(task, size)


def _size(records: list[kafka.Record]) -> int:
    return sum(len(key) + len(value) for key, value in records)


def _amount(records: list[kafka.Record]) -> str:
    return f"{len(records):,} records of {_size(records) / 1e6:.1f} MB"


def _steps_table(report: Report, first_s: float) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step")
    table.add_column("seconds", justify="right")
    for title, step_s in report.steps:
        table.add_row(title, f"{step_s:.1f}")
    table.add_row("from apply to the first record", f"{first_s:.1f}", style="bold")
    return table


def _memory_table(memory: dict[str, int]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("pod")
    table.add_column("MiB", justify="right")
    for name, size in sorted(memory.items()):
        table.add_row(name, f"{size / (1 << 20):.0f}")
    table.add_row("together", f"{sum(memory.values()) / (1 << 20):.0f}", style="bold")
    return table


def _say_goodbye(console: Console, *, keep: bool) -> None:
    console.print()
    if not keep:
        console.print("Nothing is left running. KEEP=1 make kind-demo leaves the cluster.")
        return
    servers = Quickstart(CLUSTER).bootstrap("external")
    console.print("The cluster goes on; `make kind-down` removes it.")
    console.print(f"Try:  export KUBECONFIG={CLUSTER.kubeconfig}")
    console.print(f"      kubectl get {KINDS} -n {MAIN}")
    console.print(f"      kubectl edit -n {MAIN} kafkatopic/packages")
    console.print(f"      barnabas topics describe -b {servers}")
    console.print(f"      kubectl delete -n {MAIN} -f {FILE}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
