"""``python -m benchmarks.rolls``: how long a partition takes no records while brokers are rolled.

Three brokers on one ZooKeeper, a topic of several partitions and three replicas, two producers with
acks=all and a consumer. Brokers are restarted one after the other, again and again, and then the
one that is controller is killed. What clients did and saw goes through the checker of
`tests/cluster`; the bar is that nothing is lost, and 2 s.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import click

from benchmarks.report import Page
from tests.cluster.history import Anomaly, Outcome, Send, anomalies
from tests.cluster.load import Load, under_load
from tests.cluster.rolling import Restart, kill_controller, roll
from tests.cluster.running import Cluster

PARTITIONS: Final = 12
BAR_S: Final = 2.0
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": "18000",
    "replica.lag.time.max.ms": "30000",
    "replica.fetch.backoff.ms": "1000",
    "controlled.shutdown.retry.backoff.ms": "5000",
    "leader.imbalance.check.interval.seconds": "5",
    "log.retention.check.interval.ms": "300000",
}
"""Kafka's defaults, but that leaders get their partitions back in seconds."""

HEADINGS: Final = (
    "| | Restarts | Of the controller | Longest gap s | Median of gaps s | Records acknowledged "
    "| Lost, doubled or out of order | Unanswered |"
)
NOTE: Final = """\
A gap is the longest time in which one of the partitions took no record of any producer, for each
restart. Two producers of librdkafka with acks=all write some 300 records a second each throughout,
with reconnect.backoff.max.ms=1000, which is the default of Kafka's own clients. Brokers are
supervised, as in the image. The next broker is stopped when all replicas are in sync.
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one kind of restart showed."""

    name: str
    restarts: Sequence[Restart]
    gaps: Sequence[float]
    acknowledged: int
    unanswered: Sequence[Send]
    anomalies: Sequence[Anomaly]

    @classmethod
    def of(cls, name: str, restarts: Sequence[Restart], load: Load) -> Shown:
        """The figures of a load that has ended."""
        sends = load.history.sends
        unanswered = [send for send in sends if send.outcome is not Outcome.OK]
        return cls(
            name,
            restarts,
            [load.longest_gap_s(each.began, each.ended) for each in restarts],
            len(sends) - len(unanswered),
            unanswered,
            anomalies(load.history),
        )

    @property
    def is_met(self) -> bool:
        """Whether the bar is."""
        return not self.anomalies and not self.unanswered and max(self.gaps) <= BAR_S

    def row(self) -> str:
        """As a line of the table."""
        controllers = sum(each.was_controller for each in self.restarts)
        return (
            f"| {self.name} | {len(self.restarts)} | {controllers} | {max(self.gaps):.2f} | "
            f"{median(self.gaps):.2f} | {self.acknowledged:,} | {len(self.anomalies)} "
            f"| {len(self.unanswered)} |"
        )

    def misses(self) -> Iterator[str]:
        """What is beyond the bar, one by one."""
        for each, gap in zip(self.restarts, self.gaps, strict=True):
            if gap > BAR_S:
                yield f"{each} {gap:.2f} s"
        yield from map(str, self.anomalies)
        yield from map(str, self.unanswered)


def measure(
    cluster: Cluster, topic: str, name: str, act: Callable[[Load], Sequence[Restart]]
) -> Shown:
    """Do something to brokers under load."""
    cluster.create(topic, PARTITIONS)
    with under_load(cluster.bootstrap, topic, PARTITIONS) as load:
        restarts = act(load)
    shown = Shown.of(name, restarts, load)
    click.echo(shown.row(), err=True)
    for miss in shown.misses():
        click.echo(f"{name}: {miss}", err=True)
    return shown


@click.command()
@click.option("--rolls", default=20, show_default=True, help="Of three brokers each.")
@click.option("--kills", default=20, show_default=True, help="Of the broker that is controller.")
@click.option("--keep", type=click.Path(path_type=Path), help="Where to leave data and logs.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the result.")
def main(*, rolls: int, kills: int, keep: Path | None, out: Path | None) -> None:
    """Roll three brokers under load, kill the controller, and hold the gaps against the bar."""
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="barnabas-rolls-") as root:
        directory = Path(root) if keep is None else keep
        page = Page("Rolls of three brokers under load", "benchmarks.rolls", Path(root))
        with Cluster(directory, settings=SETTINGS) as cluster:
            shown = [
                measure(
                    cluster,
                    "rolled",
                    "asked to stop (SIGTERM), in turn",
                    lambda load: [
                        each for _ in range(rolls) for each in roll(cluster, "rolled", load)
                    ],
                ),
                measure(
                    cluster,
                    "killed",
                    "controller killed (SIGKILL)",
                    lambda load: [kill_controller(cluster, "killed", load) for _ in range(kills)],
                ),
            ]
    verdicts = [
        f"* {each.name}: nothing lost, no gap beyond {BAR_S:g} s: "
        f"{'met' if each.is_met else 'MISSED'}"
        for each in shown
    ]
    text = page.text(
        f"Load average before: {busy:.0f}.\n",
        NOTE,
        HEADINGS,
        "|---|---|---|---|---|---|---|---|",
        *[each.row() for each in shown],
        "",
        *verdicts,
        "",
    )
    click.echo(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
