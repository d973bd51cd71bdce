"""``python -m benchmarks.hostile``: what one client notices while others attack the broker.

A canary produces and fetches a record every few milliseconds. Its latencies and the broker's memory
are measured without an attack and during each one, and written as a Markdown table.
"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import quantiles
from typing import Final

import click
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas_kafka.records.builder import build_batch
from benchmarks.attacks import ADMIN_ATTACKS, ATTACKS
from benchmarks.large_requests import large_rows, large_table
from benchmarks.metering import memory_mib
from benchmarks.targets import Apache, Barnabas, Target
from benchmarks.workers.frames import fetch_frame, produce_frame
from tests.oracle.apache import DEFAULT_VERSION
from tests.waiting import RUN, seconds

NICE: Final = 19
PACE_S: Final = 0.005
ANSWER_WITHIN_S: Final = 10.0
TOPIC, VICTIM = "canary", "attacked"
PRELOAD_BYTES: Final = 64 << 20
WARM_UP_TRIPS: Final = 2000
"""Round trips before anything is measured: what the JVM compiles it has compiled then."""


NOTE: Final = """\
A canary produces a record and fetches one, over and over on one connection; its round trips are
what the columns show. Attackers, canary and broker share two cores with whatever else runs there,
so that brokers are compared with themselves: an attack with `none` above it.
"""


class CanaryError(Exception):
    """The canary was not served."""


class Canary:
    """A well-behaved client: produce one record, fetch it, on one connection."""

    def __init__(self, port: int, *, within_s: float = ANSWER_WITHIN_S) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=within_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def sing(self) -> float:
        """Seconds until a record was produced and a fetch answered; raises CanaryError."""
        batch = build_batch([(int(time.time() * 1000), None, b"tweet" * 20, ())])
        began = time.perf_counter()
        try:
            self._ask(produce_frame(TOPIC, [(0, batch)], acks=1))
            self._ask(fetch_frame(TOPIC, partition=0, offset=0, max_bytes=1000))
        except OSError as error:
            raise CanaryError(str(error)) from error
        return time.perf_counter() - began

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _ask(self, frame: bytes) -> None:
        self._socket.sendall(frame)
        left = int.from_bytes(self._read(4), "big")
        self._read(left)

    def _read(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            chunk = self._socket.recv(size - len(received))
            if not chunk:
                raise CanaryError("the broker closed the connection")
            received += chunk
        return bytes(received)


@dataclass(frozen=True, slots=True)
class Row:
    """One attack as the canary saw it; times in milliseconds, memory in MiB."""

    attack: str
    p50: float
    p99: float
    largest: float
    rss: float
    note: str = ""


def set_priority(pid: int, nice: int) -> None:
    """Give a process a priority; its session, too, where Linux schedules sessions in groups."""
    os.setpriority(os.PRIO_PROCESS, pid, nice)
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice), "ascii")


def _attack(name: str, port: int, begun: Event) -> None:
    """An attack as it would be from elsewhere: its processor time is not taken from the others."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.setsid()
    set_priority(os.getpid(), NICE)
    (ATTACKS | ADMIN_ATTACKS)[name](port, VICTIM, begun.set)


@contextmanager
def under_attack(name: str, port: int) -> Iterator[Callable[[], None]]:
    """Run an attack beside; `none` is none.

    What it gives waits until the attack has begun in full, and raises TimeoutError where it does
    not.
    """
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    process = context.Process(target=_attack, args=(name, port, begun), daemon=True)

    def until_begun() -> None:
        if name != "none" and not begun.wait(seconds(RUN)):
            raise TimeoutError(f"{name} has not begun")

    if name == "none":
        yield until_begun
        return
    process.start()
    try:
        yield until_begun
    finally:
        process.kill()
        process.join()


def measure(name: str, port: int, pid: int, *, seconds: float) -> Row:
    """Sing during an attack."""
    times: list[float] = []
    largest_rss, note = 0.0, ""
    with under_attack(name, port) as until_begun:
        until_begun()
        try:
            canary = Canary(port)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                times.append(canary.sing() * 1000)
                largest_rss = max(largest_rss, memory_mib(pid)[0])
                time.sleep(PACE_S)
            canary.close()
        except (OSError, CanaryError) as error:
            note = f"canary not served: {error}"
    if len(times) < 2:
        times = [float("nan")] * 2
    cuts = quantiles(times, n=100, method="inclusive")
    return Row(name, cuts[49], cuts[98], max(times), largest_rss, note)


def prepare(bootstrap: str) -> None:
    """The canary's topic, and one with records for attackers to fetch."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1), NewTopic(VICTIM, 1, 1)]).values():
        future.result()
    batch = build_batch([(int(time.time() * 1000), None, bytes(500_000), ())])
    canary = Canary(int(bootstrap.rpartition(":")[2]))
    for _ in range(PRELOAD_BYTES // 500_000):
        canary._ask(produce_frame(VICTIM, [(0, batch)], acks=1))
    for _ in range(WARM_UP_TRIPS):
        canary.sing()
    canary.close()


def rows_of(target: Target, names: Sequence[str], *, seconds: float) -> Iterator[Row]:
    """Every attack on one broker; one that does not serve afterwards is started anew."""
    target.start()
    prepare(target.broker.bootstrap)
    for name in names:
        port = int(target.broker.bootstrap.rpartition(":")[2])
        row = measure(name, port, target.broker.pid, seconds=seconds)
        click.echo(f"{target.label}: {row}", err=True)
        yield row
        served = False
        with suppress(OSError, CanaryError):
            time.sleep(1.0)
            Canary(port).sing()
            served = True
        if not served or not target.alive():
            target.stop()
            target.start()
            prepare(target.broker.bootstrap)
    target.stop()


def large_section(target: Target) -> str:
    """Large requests to one broker, as Markdown."""
    target.start()
    prepare(target.broker.bootstrap)
    port = int(target.broker.bootstrap.rpartition(":")[2])
    canary = Canary(port)
    usual = max(canary.sing() for _ in range(100)) * 1000
    rows = list(large_rows(port, TOPIC, canary.sing))
    canary.close()
    target.stop()
    text = f"### Large requests\n\nLongest wait without one: {usual:.1f} ms.\n\n"
    return text + large_table(rows)


def table(label: str, rows: Sequence[Row]) -> str:
    """One broker's rows as Markdown."""
    lines = [
        f"## {label}",
        "",
        "| Attack | Canary p50 ms | p99 ms | largest ms | Broker RSS MiB | |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.attack} | {row.p50:.2f} | {row.p99:.2f} | {row.largest:.1f} | {row.rss:.0f} "
        f"| {row.note} |"
        for row in rows
    ]
    return "\n".join([*lines, ""])


@click.command()
@click.option("--seconds", default=5.0, show_default=True, help="How long each attack is watched.")
@click.option("--attacks", default="", help="Names of attacks, comma-separated; all.")
@click.option("--apache/--no-apache", default=True, help="Attack Apache Kafka as well.")
@click.option(
    "--real-time",
    is_flag=True,
    help="Broker and canary go before all else that runs on the machine (as root).",
)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the table.")
def main(seconds: float, attacks: str, apache: bool, real_time: bool, out: Path | None) -> None:
    """Attack brokers and write down what another client notices."""
    if real_time:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))  # Inherited by the brokers.
    names = ["none", *(attacks.split(",") if attacks else ATTACKS)]
    date = datetime.now(UTC).date()
    words = shlex.join(["python", "-m", "benchmarks.hostile", *sys.argv[1:]])
    parts = [f"# Under attack\n\n`{words}`, {date}\n\n{NOTE}"]
    with tempfile.TemporaryDirectory(prefix="hostile-") as root:
        targets: list[Target] = [Barnabas(Path(root))]
        if apache:
            targets.append(Apache(Path(root), version=DEFAULT_VERSION, heap="1g"))
        for target in targets:
            with target:
                rows = list(rows_of(target, names, seconds=seconds))
                parts.append(table(target.label, rows))
                parts.append(large_section(target))
    text = "\n".join(parts)
    click.echo(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
