"""``python -m benchmarks.failover``: how long a partition takes no records when its leader goes.

Three brokers on one ZooKeeper, a topic of one partition and three replicas, two producers with
acks=all. Its leader is hurt in one way after the other; the figure is the longest time between two
acknowledged records, and what clients did and saw goes through the checker of `tests/cluster`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import click

from benchmarks.report import Page, runs_cell
from tests.cluster.history import anomalies
from tests.cluster.load import PER_SECOND, Load, under_load
from tests.cluster.running import Cluster
from tests.oracle.apache import DEFAULT_VERSION, ApacheKafka
from tests.waiting import RUN

SETTINGS: Final = {
    "zookeeper.session.timeout.ms": "6000",
    "replica.lag.time.max.ms": "30000",
    "replica.fetch.backoff.ms": "1000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "controlled.shutdown.retry.backoff.ms": "5000",
    "log.retention.check.interval.ms": "300000",
}
"""Kafka's defaults, but for sessions of 6 s instead of 18 and what three brokers need."""

NOTE: Final = """\
The longest time in which the partition took no record, in seconds: median (lowest to highest) of
the runs. Two producers of librdkafka with acks=all write some 300 records a second each throughout.
The session of a broker times out after 6 s with all (`zookeeper.session.timeout.ms`; the default is
18 s). A request that a hanging leader has got is waited for by the client, however soon another one
leads: librdkafka's `socket.timeout.ms` is 60 s. Every run ends with the checker of `tests/cluster`
on all that clients did and saw.
"""


class _Apache(ApacheKafka):
    """Apache's broker where a `Cluster` expects ours."""

    measured = True

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self.running else 0


class ApacheCluster(Cluster):
    """Three brokers of Apache Kafka on one ZooKeeper."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, brokers=0)
        brokers = {
            broker: _Apache(
                directory=directory / f"broker-{broker}",
                zookeeper=self.zookeeper.connect,
                overrides=SETTINGS,
                heap="512M",
                broker_id=broker,
            )
            for broker in range(3)
        }
        self.brokers = cast(Any, brokers)


def ours(directory: Path, *options: str) -> Cluster:
    """Three of our brokers on one ZooKeeper."""
    return Cluster(directory, settings=SETTINGS, options=options)


ARMS: Final[Mapping[str, Callable[[Path], Cluster]]] = {
    f"Apache Kafka {DEFAULT_VERSION}": ApacheCluster,
    "Barnabas": ours,
    "Barnabas, supervised": lambda directory: ours(directory, "--supervised"),
}


STOPPED: Final = "it is asked to stop (SIGTERM)"


@contextmanager
def _gone(cluster: Cluster, broker: int, end: Callable[[], None]) -> Iterator[None]:
    end()
    yield
    cluster.start(broker)


FAULTS: Final[Mapping[str, Callable[[Cluster, int], Any]]] = {
    "its process is killed (SIGKILL)": lambda cluster, broker: _gone(
        cluster, broker, cluster.brokers[broker].kill
    ),
    STOPPED: lambda cluster, broker: _gone(cluster, broker, cluster.brokers[broker].stop),
    "it hangs (SIGSTOP)": lambda cluster, broker: cluster.frozen(broker),
}


@dataclass(slots=True)
class Figures:
    """Seconds by fault and arm, and how many anomalies there were in all."""

    gaps: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    anomalies: int = 0

    def add(self, fault: str, arm: str, load: Load) -> None:
        """What one run showed."""
        self.gaps.setdefault((fault, arm), []).append(load.gap_s)
        self.anomalies += len(anomalies(load.history))

    @property
    def runs(self) -> int:
        """How many there are of each fault and arm."""
        return min(map(len, self.gaps.values()), default=0)

    def table(self) -> str:
        """As Markdown, a line for each fault."""
        lines = ["| The leader: " + "".join(f"| {arm} " for arm in ARMS) + "|"]
        lines += ["|---" * (len(ARMS) + 1) + "|"]
        for fault in dict.fromkeys(fault for fault, _ in self.gaps):
            cells = [runs_cell(self.gaps.get((fault, arm), [])) for arm in ARMS]
            lines.append(f"| {fault} " + "".join(f"| {cell} " for cell in cells) + "|")
        return "\n".join(lines)


def measure(cluster: Cluster, topic: str, fault: str) -> Load:
    """Hurt the leader of a new topic under load, and have it back."""
    cluster.create(topic)
    with under_load(cluster.bootstrap, topic, 1) as load:
        _await_records(cluster, load)
        leader = cluster.leader(topic)
        with FAULTS[fault](cluster, leader):
            cluster.until_led_by_another(topic, leader)
            _await_records(cluster, load)
        cluster.start_missing()
        cluster.until_whole(topic)
    return load


def _await_records(cluster: Cluster, load: Load) -> None:
    enough = load.acknowledged() + 4 * PER_SECOND
    cluster.wait_for(
        f"{enough} acknowledged records",
        load.acknowledged,
        until=lambda count: count >= enough,
        within=RUN,
    )


@click.command()
@click.option("--runs", default=3, show_default=True, help="Runs of each fault and kind of broker.")
@click.option("--faults", default="SIGKILL,SIGTERM,SIGSTOP", show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path), help="Result directory; else standard output."
)
def main(*, runs: int, faults: str, output: Path | None) -> None:
    """Measure how long a partition takes no records when its leader is killed, stopped or hangs."""
    figures = Figures()
    chosen = [it for it in FAULTS if any(f"({name})" in it for name in faults.split(","))]
    with tempfile.TemporaryDirectory(prefix="barnabas-failover-") as root:
        page = Page("When a leader goes", "benchmarks.failover", Path(root))
        for run in range(runs):
            for number, (arm, start) in enumerate(ARMS.items()):
                with start(Path(root) / f"{run}-{number}") as cluster:
                    # The first topic is the JVM's to warm up with.
                    measure(cluster, "warm-up", STOPPED)
                    for each, fault in enumerate(chosen):
                        load = measure(cluster, f"t-{each}", fault)
                        figures.add(fault, arm, load)
                        click.echo(f"{arm}, {fault}: {load.gap_s:.2f} s", err=True)
            page.write(
                output,
                NOTE,
                figures.table(),
                f"\n{figures.runs} runs of each.",
                f"Anomalies in the histories of all runs: {figures.anomalies}.\n",
            )
    if output is None:
        click.echo(figures.table())


if __name__ == "__main__":
    main()
