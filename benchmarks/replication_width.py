"""``python -m benchmarks.replication_width``: what acks=all costs beside many partitions.

Three brokers on one ZooKeeper, replication factor 3. One client writes a record at a time with
acks=all to a topic of one partition: alone, beside a topic of a thousand partitions in which
nothing happens, and to the partitions of that topic in turn. Every follower fetches all of it with
each record, so work for each partition in a fetch shows in the latency.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from typing import Final

import click

from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.records.builder import build_batch
from benchmarks.failover import SETTINGS, ApacheCluster
from benchmarks.report import Page, runs_cell
from tests.broker.server.running import Wire, produce_request
from tests.cluster.running import Cluster
from tests.oracle.apache import DEFAULT_VERSION

ARMS: Final[Mapping[str, Callable[[Path], Cluster]]] = {
    f"Apache Kafka {DEFAULT_VERSION}": ApacheCluster,
    "Barnabas": lambda directory: Cluster(directory, settings=SETTINGS),
}
ONE: Final = "one partition, nothing else"
BESIDE: Final = "one partition beside {} others"
SPREAD: Final = "{} partitions in turn"
BAR: Final = 1.3

NOTE: Final = """\
Milliseconds from a Produce request of one record of 100 bytes with acks=all to its answer, one
request at a time, over loopback, to the leader; p50 and p99 of each run, the median (lowest to
highest) of the runs. All three brokers, ZooKeeper and the client share the machine's processors.
"""


@dataclass(slots=True)
class Figures:
    """p50 and p99 in milliseconds of each run, by arm and case."""

    seen: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, arm: str, case: str, times: Sequence[float]) -> None:
        """What one run showed."""
        cuts = quantiles(times, n=100, method="inclusive")
        self.seen.setdefault((arm, case), []).append((cuts[49], cuts[98]))
        click.echo(f"{arm}, {case}: p50 {cuts[49]:.2f} ms, p99 {cuts[98]:.2f} ms", err=True)

    def table(self) -> str:
        """As Markdown, a line for each arm and case."""
        lines = ["| | | p50 ms | p99 ms | p50 against one partition |", "|---|---|---|---|---|"]
        alone: dict[str, float] = {}
        for (arm, case), runs in self.seen.items():
            p50 = median(each for each, _ in runs)
            ratio = p50 / alone.setdefault(arm, p50)
            lines.append(
                f"| {arm} | {case} | {runs_cell([each for each, _ in runs])} "
                f"| {runs_cell([each for _, each in runs])} | {ratio:.2f}x |"
            )
        return "\n".join(lines)


def write(cluster: Cluster, partitions: Sequence[tuple[str, int]], *, records: int) -> list[float]:
    """Milliseconds that each of so many records took, to partitions of one leader in turn."""
    batch = bytes(build_batch([(int(time.time() * 1000), None, b"x" * 100, ())]))
    leader = cluster.leader(partitions[0][0], partitions[0][1])
    port = int(cluster.address(leader).rpartition(":")[2])
    times = []
    with Wire(port) as wire:
        for number, (topic, partition) in zip(range(records + records // 5), cycle(partitions)):
            request = produce_request(topic, batch, partition=partition)
            began = time.perf_counter()
            wire.send(request, 9)
            answer = wire.receive(ProduceResponse, 9)[1]
            if number >= records // 5:  # The first are to warm up.
                times.append((time.perf_counter() - began) * 1000)
            error = answer.responses[0].partition_responses[0].error_code
            if error:
                raise click.ClickException(f"{topic}-{partition}: error {error}")
    return times


def measure(cluster: Cluster, arm: str, figures: Figures, *, partitions: int, records: int) -> None:
    """All cases on a fresh cluster."""
    cluster.create("one")
    write(cluster, [("one", 0)], records=records)  # The JVM's to warm up with.
    figures.add(arm, ONE, write(cluster, [("one", 0)], records=records))
    cluster.create("many", partitions)
    figures.add(arm, BESIDE.format(partitions), write(cluster, [("one", 0)], records=records))
    led = cluster.leadership("many")
    same = [index for index, (leader, _) in enumerate(led) if leader == led[0][0]]
    spread = [("many", index) for index in same]
    figures.add(arm, SPREAD.format(partitions), write(cluster, spread, records=records))


@click.command()
@click.option("--runs", default=3, show_default=True)
@click.option("--records", default=2000, show_default=True, help="Of each case.")
@click.option("--partitions", default=1000, show_default=True)
@click.option("--arms", default="Apache,Barnabas", show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path), help="Result directory; else standard output."
)
def main(*, runs: int, records: int, partitions: int, arms: str, output: Path | None) -> None:
    """Measure the latency of acks=all with one and with many partitions."""
    figures = Figures()
    chosen = {arm: it for arm, it in ARMS.items() if any(name in arm for name in arms.split(","))}
    with tempfile.TemporaryDirectory(prefix="barnabas-width-") as root:
        title = "Latency of acks=all beside many partitions"
        page = Page(title, "benchmarks.replication_width", Path(root))
        for run in range(runs):
            for number, (arm, start) in enumerate(chosen.items()):
                with start(Path(root) / f"{run}-{number}") as cluster:
                    measure(cluster, arm, figures, partitions=partitions, records=records)
    if output is None:
        click.echo(figures.table())
        return
    bar = f"\nBar: p50 with {partitions} partitions at most {BAR}x of that with one.\n"
    page.write(output, NOTE, figures.table(), bar)


if __name__ == "__main__":
    main()
