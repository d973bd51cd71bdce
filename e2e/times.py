"""Measures a secured cluster on Kubernetes: what benchmarks/footprint.md shows of it.

    KIND_NODE_IMAGE=kindest/node:v1.34.4 python -m e2e.times

creates a kind cluster, installs the operator, and applies manifests/examples/three-racks.yaml,
three members and three brokers, a few times: from `kubectl apply` until the KafkaCluster is Ready,
a roll of all three brokers while they are idle, and the memory of all pods. The result is written
into the document, with date and load. The kind cluster is removed.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from e2e.cluster import Cluster, cluster_of_this_source
from e2e.commands import ROOT
from e2e.quickstart import MAIN, RELEASE, install_with_helm
from e2e.three_racks import ALL, BROKERS, FILE, ready_pods, wait_in_sync, wait_ready
from tests.waiting import RUN

DOCUMENT: Final = ROOT / "benchmarks" / "footprint.md"
BEGIN: Final = "<!-- Written by `python -m e2e.times`. -->"
END: Final = "<!-- End of what it writes. -->"
RUNS: Final = 3
# What the figures are to be at most, on an idle machine of two cores.
READY_S: Final = 45.0
ROLL_S: Final = 60.0
OPERATOR_MIB: Final = 96.0
TOGETHER_MIB: Final = 1.2 * 1024
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured: seconds and the machine's load in each run, bytes of each pod."""

    ready_s: Sequence[float]
    roll_s: Sequence[float]
    loads: Sequence[float]
    memory: Mapping[str, int]

    @property
    def operator(self) -> int:
        """Bytes of the operator's pod."""
        return sum(size for name, size in self.memory.items() if name.startswith(RELEASE))

    @property
    def together(self) -> int:
        """Bytes of all pods."""
        return sum(self.memory.values())

    @property
    def missed(self) -> bool:
        """Whether any figure is above its bar."""
        return (
            statistics.median(self.ready_s) > READY_S
            or statistics.median(self.roll_s) > ROLL_S
            or self.operator > OPERATOR_MIB * MIB
            or self.together > TOGETHER_MIB * MIB
        )


def applied_s(cluster: Cluster) -> float:
    """Seconds from `kubectl apply` of the example until its KafkaCluster is Ready."""
    began = time.monotonic()
    cluster.kubectl("apply", "-n", MAIN, "-f", FILE)
    cluster.wait_ready("kafkacluster/three", namespace=MAIN, within=RUN)
    took = time.monotonic() - began
    wait_ready(cluster)
    wait_in_sync(cluster, within=RUN)
    return took


def rolled_s(cluster: Cluster) -> float:
    """Seconds from the request until three other brokers are Ready and no roll is left."""
    old = ready_pods(cluster)
    began = time.monotonic()
    cluster.kubectl("annotate", "pods", "-n", MAIN, "-l", BROKERS, "barnabas.io/manual-roll=true")

    def left() -> bool:
        found = ready_pods(cluster)
        status = (cluster.get("kafkacluster", "three", namespace=MAIN) or {})["status"]
        new = [name for name, uid in found.items() if uid != old[name]]
        return len(new) == len(old) and not status.get("roll")

    cluster.wait_for("three other brokers", left, namespaces=(MAIN,), within=RUN)
    return time.monotonic() - began


def measure(cluster: Cluster) -> Figures:
    """Apply, roll and remove the example, a few times."""
    ready, rolls, loads, memory = [], [], [], {}
    for _ in range(RUNS):
        ready.append(applied_s(cluster))
        rolls.append(rolled_s(cluster))
        loads.append(os.getloadavg()[0])
        wait_in_sync(cluster, within=RUN)
        memory = cluster.working_sets(MAIN)
        cluster.delete_objects("-n", MAIN, "-f", FILE)
        cluster.wait_gone("pods", namespace=MAIN, selector=ALL)
        cluster.kubectl("delete", "pvc", "-n", MAIN, "-l", "barnabas.io/cluster=three")
    return Figures(ready_s=ready, roll_s=rolls, loads=loads, memory=memory)


def report(figures: Figures, day: str) -> str:
    """The part of the document."""
    runs = f"load {min(figures.loads):.0f} to {max(figures.loads):.0f}, {len(figures.ready_s)} runs"
    pods = sorted(figures.memory.items())
    lines = [
        BEGIN,
        "",
        f"`python -m e2e.times`, {day}, {os.cpu_count()} cores beside other programs, {runs}:",
        "",
        "| Measure | Median | Least to most | Bar |",
        "|---|---|---|---|",
        _seconds("`kubectl apply` to Ready", figures.ready_s, READY_S),
        _seconds("a roll of three idle brokers", figures.roll_s, ROLL_S),
        _memory("the operator", figures.operator, OPERATOR_MIB),
        _memory("operator, 3 ZooKeeper and 3 brokers", figures.together, TOGETHER_MIB),
        "",
        "| Pod | Working set, MiB |",
        "|---|---|",
        *(f"| `{_short(name)}` | {size / MIB:.0f} |" for name, size in pods),
        "",
        END,
    ]
    return "\n".join(lines)


def _seconds(what: str, found: Sequence[float], bar: float) -> str:
    median = statistics.median(found)
    return f"| {what}, seconds | {median:.0f} | {min(found):.0f} to {max(found):.0f} | {bar:.0f} |"


def _memory(of: str, size: int, bar: float) -> str:
    return f"| memory of {of}, MiB | {size / MIB:.0f} | | {bar:,.0f} |"


def _short(pod: str) -> str:
    return RELEASE if pod.startswith(RELEASE) else pod


def written(document: str, part: str) -> str:
    """The document with another part between the marks."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + part + after


def main() -> int:
    """Measure, and write the result into the document; 1 where a bar is missed."""
    with cluster_of_this_source("barnabas-times") as cluster:
        install_with_helm(cluster)
        figures = measure(cluster)
    part = report(figures, f"{datetime.now(tz=UTC):%Y-%m-%d}")
    DOCUMENT.write_text(written(DOCUMENT.read_text("utf-8"), part), "utf-8")
    sys.stdout.write(f"{part}\n")
    return int(figures.missed)


if __name__ == "__main__":
    sys.exit(main())
