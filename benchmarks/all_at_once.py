"""``python -m benchmarks.all_at_once``: four attacks on one broker at the same time, and the bar.

Two hundred connections send bombs, sixty hold large joins, twelve drip at the admin port and a
hundred old clients commit offsets. Meanwhile a canary produces and fetches, a probe asks `/live`,
and the broker's memory is read. The same is measured before, and during each attack alone, which
tells which of them is felt.
"""

from __future__ import annotations

import http.client
import os
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from typing import Final

import click

from benchmarks.hostile import (
    ANSWER_WITHIN_S,
    PACE_S,
    Canary,
    CanaryError,
    prepare,
    set_priority,
    under_attack,
)
from benchmarks.metering import memory_mib
from benchmarks.targets import Apache, Barnabas, Target
from tests.oracle.apache import DEFAULT_VERSION, free_port

ATTACKS: Final = ("many-bombs", "large-joins", "old-commits")
ADMIN_ATTACK: Final = "admin-drippers"
PROBE_EVERY_S: Final = 0.1
TIMES_BEFORE: Final = 5.0
MEMORY_MIB: Final = 300.0
LIVE_MS: Final = 1000.0

BEFORE: Final = "before"
DURING: Final = "all at once"
FIRST: Final = -15
HEADINGS: Final = (
    "| | Round trips | p50 ms | p99 ms | largest ms | Broker RSS MiB | Probes "
    "| `/live` largest ms | not served |"
)


@dataclass(slots=True)
class Seen:
    """What was seen in one stretch: milliseconds and MiB; an answer not given is in `failures`."""

    trips: list[float] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)
    memory: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def p99(self) -> float:
        """Of the canary's round trips."""
        if len(self.trips) < 2:
            return float("inf")
        return quantiles(self.trips, n=100, method="inclusive")[98]

    @property
    def live(self) -> float:
        """The longest wait for `/live`."""
        return max(self.probes, default=float("inf"))

    def row(self, name: str) -> str:
        """As a line of the table."""
        p50 = quantiles(self.trips, n=2)[0] if len(self.trips) > 1 else float("inf")
        return (
            f"| {name} | {len(self.trips)} | {p50:.2f} | {self.p99:.2f} | "
            f"{max(self.trips, default=float('inf')):.1f} | {self.memory:.0f} | "
            f"{len(self.probes)} | {self.live:.0f} | {'; '.join(self.failures)} |"
        )


class Probe(threading.Thread):
    """Asks `/live`, on a new connection each time, until told to stop."""

    def __init__(self, port: int, seen: Seen) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._seen = seen
        self.over = threading.Event()

    def run(self) -> None:
        """Ask."""
        while not self.over.wait(PROBE_EVERY_S):
            began = time.perf_counter()
            try:
                self._ask()
            except (OSError, http.client.HTTPException) as error:
                self._seen.failures.append(f"/live: {error!r}")
            self._seen.probes.append((time.perf_counter() - began) * 1000)

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_WITHIN_S)
        try:
            connection.request("GET", "/live")
            status = connection.getresponse().status
        finally:
            connection.close()
        if status != http.HTTPStatus.OK:
            self._seen.failures.append(f"/live: {status}")


def watch(port: int, admin_port: int | None, pid: int, *, seconds: float) -> Seen:
    """Sing and probe for so long."""
    seen = Seen()
    probe = None if admin_port is None else Probe(admin_port, seen)
    if probe is not None:
        probe.start()
    try:
        canary = Canary(port)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            seen.trips.append(canary.sing() * 1000)
            seen.memory = max(seen.memory, memory_mib(pid)[0])
            time.sleep(PACE_S)
        canary.close()
    except (OSError, CanaryError) as error:
        seen.failures.append(f"canary: {error}")
    if probe is not None:
        probe.over.set()
        probe.join()
    return seen


def measure(
    target: Target, admin_port: int | None, *, seconds: float, first: bool
) -> dict[str, Seen]:
    """Each stretch on one broker; the admin port is attacked where there is one."""
    target.start()
    port, pid = int(target.broker.bootstrap.rpartition(":")[2]), target.broker.pid
    if first:
        set_priority(pid, FIRST)
    prepare(target.broker.bootstrap)
    seen: dict[str, Seen] = {}

    def note(name: str) -> None:
        seen[name] = watch(port, admin_port, pid, seconds=seconds)
        click.echo(f"{target.label}: {seen[name].row(name)}", err=True)

    note(BEFORE)
    attacks = dict.fromkeys(ATTACKS, port)
    if admin_port is not None:
        attacks[ADMIN_ATTACK] = admin_port
    for name, attacked in attacks.items():
        with under_attack(name, attacked) as until_begun:
            until_begun()
            note(f"{name} alone")
    with ExitStack() as stack:
        begins = [stack.enter_context(under_attack(*each)) for each in attacks.items()]
        for until_begun in begins:
            until_begun()
        note(DURING)
    return seen


def table(label: str, seen: Mapping[str, Seen]) -> list[str]:
    """One broker's stretches as Markdown."""
    rows = [each.row(name) for name, each in seen.items()]
    return [f"## {label}", "", HEADINGS, "|---|---|---|---|---|---|---|---|---|", *rows, ""]


def verdicts(before: Seen, during: Seen) -> list[str]:
    """The bar, item by item."""
    times = during.p99 / before.p99
    judged = (
        (
            f"canary p99 {times:.1f} times that of before",
            f"{TIMES_BEFORE:g}",
            times <= TIMES_BEFORE,
        ),
        (f"memory {during.memory:.0f} MiB", f"{MEMORY_MIB:g}", during.memory <= MEMORY_MIB),
        (f"/live within {during.live:.0f} ms", f"{LIVE_MS:g}", during.live <= LIVE_MS),
        (f"{len(during.failures)} requests not served", "0", not during.failures),
    )
    return [
        f"* {reported} (at most {most}): {'met' if met else 'MISSED'}"
        for reported, most, met in judged
    ]


@click.command()
@click.option("--seconds", default=10.0, show_default=True, help="How long each stretch is.")
@click.option("--first", is_flag=True, help="Broker and canary go before others (as root).")
@click.option("--apache", is_flag=True, help="Attack Apache Kafka as well; it has no admin port.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the result.")
def main(seconds: float, first: bool, apache: bool, out: Path | None) -> None:
    """Attack a broker from all sides at once and hold what others notice against the bar."""
    if first:
        # Inherited by the broker. Not by real-time scheduling: among the broker's own threads, of
        # which several have much to do here, that hands a core on after a tenth of a second only.
        set_priority(os.getpid(), FIRST)
    admin_port = free_port()
    settings = {"barnabas.admin.listener": f"127.0.0.1:{admin_port}"}
    load = f"{os.getloadavg()[0]:.0f}"
    with tempfile.TemporaryDirectory(prefix="all-") as root:
        with Barnabas(Path(root), settings=settings) as target:
            seen = measure(target, admin_port, seconds=seconds, first=first)
        tables = [*table(target.label, seen), *verdicts(seen[BEFORE], seen[DURING]), ""]
        if apache:
            with Apache(Path(root), version=DEFAULT_VERSION, heap="1g") as theirs:
                others = measure(theirs, None, seconds=seconds, first=first)
            times = others[DURING].p99 / others[BEFORE].p99
            tables += [
                *table(theirs.label, others),
                f"* canary p99 {times:.1f} times that of before",
                "",
            ]
    words = shlex.join(["python", "-m", "benchmarks.all_at_once", *sys.argv[1:]])
    machine = f"load {load} before, {os.getloadavg()[0]:.0f} after"
    cores = len(os.sched_getaffinity(0))
    lines = [
        "# Attacked from all sides at once",
        "",
        f"`{words}`, {datetime.now(UTC).date()}, {machine}, {cores} cores",
        "",
        *tables,
    ]
    click.echo("\n".join(lines))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main()
