"""``python -m benchmarks.three_brokers``: throughput, CPU and latency over three brokers.

Replication factor 3, min.insync.replicas 2, acks=all: Kafka's ProducerPerformance at full load and
at half of what Apache Kafka takes, to topics of 1, 100 and 1,000 partitions; and transactions of
1, 20 and 80 producers beside Apache Kafka 4, whose second transaction protocol ours speaks.
"""

from __future__ import annotations

import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final, Self

import click
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.cases.producers import PRODUCER_PERFORMANCE
from benchmarks.clients import producer_performance_report, run_java
from benchmarks.failover import SETTINGS, ApacheCluster, ours
from benchmarks.report import Page, runs_cell
from tests.cluster.running import Cluster
from tests.oracle.apache import DEFAULT_VERSION, KRAFT_VERSION, ApacheKRaft, free_port
from tests.waiting import ANSWER, ATTEMPT_S, seconds, wait_for

BARNABAS: Final = "Barnabas"
APACHE: Final = f"Apache Kafka {DEFAULT_VERSION}"
KRAFT: Final = f"Apache Kafka {KRAFT_VERSION}"
RECORD_BYTES: Final = 1024
PRODUCER: Final = ("acks=all", "batch.size=65536", "linger.ms=5")
TRANSACTION_LOG: Final = {
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
MB: Final = 1_000_000

NOTE: Final = """\
Medians of the runs, lowest to highest behind them. All three brokers, ZooKeeper and the clients
share the machine's processors, so what a broker does not use its client and the other brokers do.
CPU is that of all three brokers. Half load is half of the rate that Apache Kafka reached at full
load in the same run, for both. A transaction is three records of 100 bytes to three partitions of
a topic of 12, from beginTransaction to the answer to commitTransaction.
"""
BARS: Final = (
    "Bars: full load at least 1.2x, CPU for each MB at most 0.6x, p99 at half load at most 1.0x, "
    "transactions at least 1.0x."
)


class Arm(ABC):
    """Three brokers under measurement. Use as a context."""

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """All of them."""

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """Their processes."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic of which every replica is in sync."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.list_topics(timeout=ATTEMPT_S)
        for answer in admin.create_topics([NewTopic(topic, partitions, 3)]).values():
            answer.result(seconds(ANSWER))
        wait_for(
            f"all {partitions} partitions of {topic} in sync",
            lambda: admin.list_topics(topic, timeout=ATTEMPT_S).topics[topic].partitions,
            until=lambda found: (
                len(found) == partitions and all(len(it.isrs) == 3 for it in found.values())
            ),
        )


class OnZooKeeper(Arm):
    """Ours, or Apache's in ZooKeeper mode."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def bootstrap(self) -> str:
        """All of them."""
        return self.cluster.bootstrap

    @property
    def pids(self) -> list[int]:
        """Their processes; ZooKeeper's is not among them."""
        return [broker.pid for broker in self.cluster.brokers.values()]

    def __enter__(self) -> Self:
        self.cluster.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.__exit__(None, None, None)


class OnKRaft(Arm):
    """Apache Kafka 4: three nodes, each broker and controller."""

    def __init__(self) -> None:
        ports = {node: free_port() for node in range(3)}
        settings = {**SETTINGS, **TRANSACTION_LOG}
        self.nodes = [
            ApacheKRaft(node=node, controllers=ports, overrides=settings) for node in ports
        ]
        for each in self.nodes:
            each.measured = True
        self._running = ExitStack()

    @property
    def bootstrap(self) -> str:
        """All of them."""
        return ",".join(node.bootstrap for node in self.nodes)

    @property
    def pids(self) -> list[int]:
        """Their processes."""
        return [node.pid for node in self.nodes]

    def __enter__(self) -> Self:
        for node in self.nodes:
            self._running.callback(node.__exit__, None, None, None)
        with ThreadPoolExecutor(len(self.nodes)) as threads:
            list(threads.map(ApacheKRaft.start, self.nodes))
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


@dataclass(slots=True)
class Figures:
    """Values of each run by case, arm and the name of the figure."""

    seen: dict[tuple[str, str], dict[str, list[float]]] = field(default_factory=dict)

    def add(self, case: str, arm: str, **figures: float) -> None:
        """What one run showed."""
        columns = self.seen.setdefault((case, arm), {})
        for name, value in figures.items():
            columns.setdefault(name.replace("_", " "), []).append(value)
        shown = ", ".join(f"{name} {value:.2f}" for name, value in figures.items())
        click.echo(f"{case}, {arm}: {shown}", err=True)

    def table(self) -> str:
        """As Markdown: a line for each case and figure, ours over theirs at its end."""
        lines = ["| Case | | Apache Kafka | Barnabas | ratio |", "|---|---|---|---|---|"]
        for (case, arm), columns in self.seen.items():
            if arm == BARNABAS:
                continue
            for name, theirs in columns.items():
                own = self.seen.get((case, BARNABAS), {}).get(name, [])
                ratio = f"{median(own) / median(theirs):.2f}x" if own and median(theirs) else ""
                lines.append(
                    f"| {case} | {name} | {runs_cell(theirs)} | {runs_cell(own)} | {ratio} |"
                )
        return "\n".join(lines)


def produce(arm: Arm, topic: str, records: int, per_second: int) -> dict[str, float]:
    """One ProducerPerformance; -1 records `per_second` is as fast as it can."""
    output, meter = run_java(
        arm.pids,
        PRODUCER_PERFORMANCE,
        *("--topic", topic, "--num-records", str(records), "--record-size", str(RECORD_BYTES)),
        *("--throughput", str(per_second), "--producer-props"),
        *(f"bootstrap.servers={arm.bootstrap}", *PRODUCER),
        version=DEFAULT_VERSION,
    )
    summary = producer_performance_report(output)
    megabytes = records * RECORD_BYTES / MB
    return {
        "records_per_s": summary["records_per_s"],
        "MB_per_s": summary["records_per_s"] * RECORD_BYTES / MB,
        "CPU_ms_per_MB": meter.cpu * 1000 / megabytes,
        "p50_ms": summary["p50"],
        "p99_ms": summary["p99"],
    }


def measure_producers(
    figures: Figures, root: Path, program: Path | None, *, records: int, widths: Sequence[int]
) -> None:
    """Full and half load, to topics of so many partitions."""
    half: dict[int, int] = {}
    for name, arm in ((APACHE, OnZooKeeper(ApacheCluster(root / "apache"))), _ours(root, program)):
        with arm:
            arm.create("warm-up", 1)
            produce(arm, "warm-up", records, -1)
            for width in widths:
                topic = f"width-{width}"
                arm.create(topic, width)
                full = produce(arm, topic, records, -1)
                per_second = half.setdefault(width, int(full["records_per_s"] / 2))
                full.pop("records_per_s")
                figures.add(f"full load, {width} partitions", name, **full)
                partial = produce(arm, topic, max(per_second * 5, 1000), per_second)
                partial.pop("records_per_s")
                figures.add(f"half load, {width} partitions", name, **partial)


def commit(arm: Arm, producers: int, duration_s: int) -> dict[str, float]:
    """So many transactional producers of one Java process, for so long."""
    output, meter = run_java(
        arm.pids,
        "Transactions",
        *(arm.bootstrap, "transactions", "12", str(producers), str(duration_s)),
        version=KRAFT_VERSION,
    )
    said = json.loads(output.strip().splitlines()[-1])
    return {
        "transactions_per_s": said["transactions"] / said["seconds"],
        "CPU_ms_per_transaction": meter.cpu * 1000 / max(said["transactions"], 1),
        "p50_ms": said["p50"],
        "p99_ms": said["p99"],
    }


def measure_transactions(
    figures: Figures, root: Path, program: Path | None, *, duration_s: int, producers: Sequence[int]
) -> None:
    """So many transactional producers at a time."""
    for name, arm in ((KRAFT, OnKRaft()), _ours(root, program)):
        with arm:
            arm.create("transactions", 12)
            commit(arm, producers[0], duration_s)  # To warm up with.
            for count in producers:
                seen = commit(arm, count, duration_s)
                figures.add(f"{count} transactional producers", name, **seen)


def _ours(root: Path, program: Path | None) -> tuple[str, Arm]:
    cluster = ours(root / "barnabas")
    for broker in cluster.brokers.values():
        broker.settings |= TRANSACTION_LOG
        if program is not None:
            broker.program = program
    return BARNABAS, OnZooKeeper(cluster)


@click.command()
@click.option("--runs", default=3, show_default=True)
@click.option("--records", default=200_000, show_default=True, help="Of each case at full load.")
@click.option("--partitions", default="1,100,1000", show_default=True)
@click.option("--producers", default="1,20,80", show_default=True, help="Transactional ones.")
@click.option("--seconds", "duration_s", default=10, show_default=True, help="Of transactions.")
@click.option("--only", type=click.Choice(["producers", "transactions"]))
@click.option(
    "--barnabas",
    "program",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The `barnabas` to measure; the one beside this Python.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), help="Result directory; else standard output."
)
def main(
    *,
    runs: int,
    records: int,
    partitions: str,
    producers: str,
    duration_s: int,
    only: str | None,
    program: Path | None,
    output: Path | None,
) -> None:
    """Measure three brokers beside Apache Kafka's."""
    figures = Figures()
    widths = [int(it) for it in partitions.split(",")]
    counts = [int(it) for it in producers.split(",")]
    with tempfile.TemporaryDirectory(prefix="barnabas-three-") as root:
        page = Page("Three brokers", "benchmarks.three_brokers", Path(root))
        for run in range(runs):
            here = Path(root) / str(run)
            if only != "transactions":
                measure_producers(
                    figures, here / "produce", program, records=records, widths=widths
                )
            if only != "producers":
                measure_transactions(
                    figures, here / "commit", program, duration_s=duration_s, producers=counts
                )
            page.write(output, NOTE, figures.table(), f"\n{BARS}\n")
    if output is None:
        click.echo(figures.table())


if __name__ == "__main__":
    main()
