"""`make demo`: a cluster, this machine's own data through it and back, every byte compared.

Runs `barnabas local up` on manifests/examples/demo.yaml in a temporary directory, sends what
`demo_input` finds with librdkafka, reads it all back, compares each record by its digest, measures
as it goes and reports. The exit code is 1 when anything differs. KEEP=1 leaves the cluster running
and says where.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn
from rich.table import Table

from tools import steps
from tools.demo_input import Stream, streams

ROOT: Final = Path(__file__).resolve().parent.parent
MANIFEST: Final = ROOT / "manifests" / "examples" / "demo.yaml"
# The limit is the broker's; the client's own must not be met before it.
CLIENT_BYTES_MAX = 64 << 20
ROUND_TRIPS = 1_000
ROUND_TRIPS_WARM_UP = 50
ROUND_TRIP_TOPIC = "demo.latency"
# Without a single record for so long, something is wrong and waiting does not mend it.
STALL_S = 30.0
BATCH_RECORDS = 1_000
TURN_S = 0.2
# How long `barnabas local` has to end after Ctrl-C.
ENDING_S: Final = 20.0
INTERRUPTED: Final = 130

# partition and offset → digest of key and value
Digests = dict[tuple[int, int], bytes]


class DemoError(Exception):
    """What was read is not what was sent, or could not be sent at all."""


@dataclass(slots=True)
class Passage:
    """One stream on its way there and back."""

    stream: Stream
    sending_s: float = 0.0
    reading_s: float = 0.0


@dataclass(slots=True)
class Figures:
    """What the report says."""

    rss_at_start: int
    rss_at_end: int = 0
    passages: list[Passage] = field(default_factory=list)
    round_trips_ms: list[float] = field(default_factory=list)


class Cluster:
    """The cluster of a manifest, by the command that a person would use."""

    def __init__(self, manifest: Path, directory: Path) -> None:
        self.manifest = manifest
        self.directory = directory
        self.bootstrap_servers = ""
        self.startup_s = 0.0

    def up(self, console: Console) -> None:
        """Start it and wait until it is Ready; raises DemoError."""
        console.print(f"[bold]barnabas local up {os.path.relpath(self.manifest)}[/]")
        began = time.perf_counter()
        with console.status("starting"):
            reported = self._local("up", str(self.manifest))
        self.startup_s = time.perf_counter() - began
        console.print(reported.rstrip(), markup=False, soft_wrap=True)
        self.bootstrap_servers = self._look()["status"]["listeners"][0]["bootstrapServers"]

    def down(self) -> None:
        """Stop it and delete its data, whether it runs or not; raises DemoError."""
        self._local("down", "--delete-data")

    def memory_bytes(self) -> int:
        """The resident memory of the broker; raises DemoError if it does not run."""
        size: int | None = self._look()["brokers"][0]["memoryBytes"]
        if size is None:
            raise DemoError("the broker does not run any more")
        return size

    def _look(self) -> dict[str, Any]:
        reported = json.loads(self._local("status", "--output", "json"))
        cluster: dict[str, Any] = reported["clusters"][0]
        return cluster

    def _local(self, *arguments: str) -> str:
        command = [sys.executable, "-P", "-m", "barnabas_broker.cli", "local", *arguments]
        process = None
        try:
            with steps.held():
                # A session of its own: Ctrl-C is ours to pass on.
                process = subprocess.Popen(
                    [*command, "--dir", str(self.directory)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            reported, complaint = process.communicate()
        except KeyboardInterrupt:
            if process is not None:
                _let_end(process)
            raise
        if process.returncode != 0:
            raise DemoError(complaint.strip() or reported.strip())
        return reported


def _let_end(process: subprocess.Popen[str]) -> None:
    """Let a command come to its end: only then is all that it started known, and can be stopped."""
    for end in (process.terminate, process.kill):
        try:
            process.communicate(timeout=ENDING_S)
        except subprocess.TimeoutExpired:
            end()
        else:
            return
    process.communicate()


def main() -> int:
    """Run the demonstration; the exit code says whether every byte came back."""
    keep = os.environ.get("KEEP", "") not in ("", "0")
    # Until `run` is ready to remove the directory.
    steps.block()
    cluster = Cluster(MANIFEST, Path(tempfile.mkdtemp(prefix="barnabas-demo-")))
    return run(Console(highlight=False), cluster, streams, keep=keep)


def run(console: Console, cluster: Cluster, find: Callable[[], list[Stream]], *, keep: bool) -> int:
    """Bring the cluster up, stream through it what is found, and end it unless it is to be kept.

    Ctrl-C ends it at any moment, and then as well nothing is left behind.
    """
    figures = None
    status = 1
    with steps.one_interrupt():
        try:
            try:
                steps.unblock()
                cluster.up(console)
                figures = _demonstrate(console, cluster, find)
                status = 0
            finally:
                steps.ignore()
        except (DemoError, KafkaException) as error:
            console.print(f"[bold red]The demonstration failed:[/] {error}")
        except KeyboardInterrupt:
            console.print("Interrupted; stopping the cluster.")
            status = INTERRUPTED
        if figures is not None and status == 0:
            _report(console, figures, cluster)
        if keep and status == 0:
            _say_where(console, cluster)
        elif not _end(console, cluster):
            status = status or 1
        else:
            console.print("The cluster is stopped and its files are deleted.")
            if status == 0:
                _say_next(console)
    return status


def _end(console: Console, cluster: Cluster) -> bool:
    """Stop the cluster and remove its files; whether nothing is left."""
    try:
        cluster.down()
        shutil.rmtree(cluster.directory)
    except FileNotFoundError:
        return True
    except (DemoError, OSError) as error:
        console.print(f"[bold red]The cluster could not be stopped:[/] {error}", soft_wrap=True)
        console.print(f"Its files are in {cluster.directory}", soft_wrap=True)
        return False
    return True


def _demonstrate(console: Console, cluster: Cluster, find: Callable[[], list[Stream]]) -> Figures:
    """Send, read, compare and measure."""
    bootstrap, figures = cluster.bootstrap_servers, Figures(rss_at_start=cluster.memory_bytes())
    with console.status("looking for data on this machine"):
        found = find()
    figures.passages = [Passage(stream) for stream in found]
    sent = {}
    with _progress(console) as progress:
        for passage in figures.passages:
            bar = _bar(progress, "send", passage.stream)
            sent[passage.stream.topic], passage.sending_s = send(bootstrap, passage.stream, bar)
        for passage in figures.passages:
            bar = _bar(progress, "read", passage.stream)
            expected = sent[passage.stream.topic]
            passage.reading_s = read_back(bootstrap, passage.stream, expected, bar)
    records = sum(len(stream.records) for stream in found)
    size = sum(stream.size for stream in found)
    console.print(
        f"All {records:,} records, {size / 1e6:.0f} MB, came back; every byte is the same."
    )
    with console.status("measuring round trips"):
        figures.round_trips_ms = round_trips(bootstrap)
    figures.rss_at_end = cluster.memory_bytes()
    return figures


def digest(key: bytes | None, value: bytes | None) -> bytes:
    """A fingerprint of a record in which key and value cannot be mistaken for each other."""
    fingerprint = hashlib.blake2b(digest_size=16)
    for part in (key, value):
        fingerprint.update(b"-" if part is None else b"%d:" % len(part))
        fingerprint.update(part or b"")
    return fingerprint.digest()


def send(bootstrap: str, stream: Stream, advance: Callable[[int], None]) -> tuple[Digests, float]:
    """Send a stream with acks=all; where each record went, and the seconds it took."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": stream.compression,
            "message.max.bytes": CLIENT_BYTES_MAX,
            "queue.buffering.max.kbytes": 256 << 10,
            "linger.ms": 5,
            "log_level": 3,
        }
    )
    # The library takes half a second over its producer id; that is nobody's throughput.
    producer.produce(ROUND_TRIP_TOPIC, b"hello")
    _flush(producer)
    where: Digests = {}
    failures: list[KafkaError] = []

    def delivered(fingerprint: bytes, size: int, error: KafkaError | None, done: Message) -> None:
        if error is not None:
            failures.append(error)
            return
        where[done.partition() or 0, done.offset() or 0] = fingerprint
        advance(size)

    began = time.perf_counter()
    for key, value in stream.records:
        fingerprint, size = digest(key, value), len(key) + len(value)

        def on_delivery(
            error: KafkaError | None,
            done: Message,
            fingerprint: bytes = fingerprint,
            size: int = size,
        ) -> None:
            delivered(fingerprint, size, error, done)

        _produce(producer, stream.topic, (key, value), on_delivery)
    waiting = _flush(producer)
    seconds = time.perf_counter() - began
    if failures:
        raise DemoError(f"{len(failures)} records of {stream.topic} refused: {failures[0].str()}")
    if waiting or len(where) != len(stream.records):
        raise DemoError(f"{len(where)} of {len(stream.records)} records of {stream.topic} arrived")
    return where, seconds


def _flush(producer: Producer) -> int:
    """Wait for all acknowledgements while any come; how many are missing in the end.

    In short turns: Python sees Ctrl-C between them.
    """
    left = len(producer)
    last = time.perf_counter()
    while left and time.perf_counter() - last < STALL_S:
        now_left = producer.flush(TURN_S)
        if now_left < left:
            left, last = now_left, time.perf_counter()
    return left


def _produce(
    producer: Producer,
    topic: str,
    record: tuple[bytes, bytes],
    on_delivery: Callable[[KafkaError | None, Message], None],
) -> None:
    """Queue one record, waiting for room where there is none."""
    key, value = record
    while True:
        try:
            producer.produce(topic, key=key, value=value, on_delivery=on_delivery)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def read_back(
    bootstrap: str, stream: Stream, sent: Digests, advance: Callable[[int], None]
) -> float:
    """Read the whole topic, compare each record with what was sent; the seconds it took."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "barnabas-demo",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    missing = dict(sent)
    try:
        open_partitions = _partitions(bootstrap, stream.topic)
        began = last = last_record = time.perf_counter()
        consumer.assign([TopicPartition(stream.topic, number, 0) for number in open_partitions])
        while open_partitions:
            for message in consumer.consume(BATCH_RECORDS, 0.1):
                last = time.perf_counter()
                error = message.error()
                if error is None:
                    _check(stream, message, missing)
                    last_record = last
                    advance(len(message.key() or b"") + len(message.value() or b""))
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition() or 0)
                else:
                    raise DemoError(f"cannot read {stream.topic}: {error.str()}")
            if time.perf_counter() - last > STALL_S:
                raise DemoError(f"no record of {stream.topic} came for {STALL_S:.0f} s")
    finally:
        consumer.close()
    if missing:
        (partition, offset) = min(missing)
        what = f"{len(missing)} records of {stream.topic} are missing"
        raise DemoError(f"{what}, the first is {partition}@{offset}")
    return last_record - began


def _partitions(bootstrap: str, topic: str) -> set[int]:
    """The numbers of a topic's partitions."""
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, STALL_S)
    return set(found.topics[topic].partitions)


def _check(stream: Stream, message: Message, missing: Digests) -> None:
    """Take one record off the list of what is missing; any difference is an error."""
    where = (message.partition() or 0, message.offset() or 0)
    name = f"{stream.topic}-{where[0]}@{where[1]}"
    expected = missing.pop(where, None)
    if expected is None:
        raise DemoError(f"{name} was never sent")
    if digest(message.key(), message.value()) != expected:
        raise DemoError(f"{name} differs from what was sent")


def round_trips(bootstrap: str) -> list[float]:
    """Milliseconds from sending one record with acks=all to its acknowledgement, one by one."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    taken = []
    for _ in range(ROUND_TRIPS_WARM_UP + ROUND_TRIPS):
        began = time.perf_counter()
        producer.produce(ROUND_TRIP_TOPIC, value=b"x" * 100)
        if producer.flush(STALL_S):
            raise DemoError(f"no acknowledgement within {STALL_S:.0f} s")
        taken.append((time.perf_counter() - began) * 1000)
    return taken[ROUND_TRIPS_WARM_UP:]


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[amount]:>24}"),
        console=console,
    )


def _bar(progress: Progress, verb: str, stream: Stream) -> Callable[[int], None]:
    """A bar for one stream, and the function that moves it by so many bytes."""
    amount = f"{len(stream.records):,} records {stream.size / 1e6:5.1f} MB"
    task: TaskID = progress.add_task(f"{verb} {stream.title}", total=stream.size, amount=amount)
    return lambda size: progress.advance(task, size)


def _report(console: Console, figures: Figures, cluster: Cluster) -> None:
    """The figures."""
    console.print()
    console.print(_passages_table(figures.passages))
    console.print()
    percentiles = statistics.quantiles(figures.round_trips_ms, n=100)
    start, end = figures.rss_at_start / 1e6, figures.rss_at_end / 1e6
    trips = f"p50 {percentiles[49]:.2f} ms, p99 {percentiles[98]:.2f} ms"
    for name, text in (
        (
            "start-up",
            f"{cluster.startup_s:.2f} s from the command to a cluster with all its topics",
        ),
        ("round trip", f"{trips} ({len(figures.round_trips_ms):,} one by one, acks=all)"),
        ("memory", f"{start:.0f} MB after start, {end:.0f} MB after all this"),
    ):
        console.print(f"[bold]{name:<12}[/]{text}")
    console.print("One Python client beside the broker on this machine: a demo, not a benchmark.")
    console.print()


def _say_where(console: Console, cluster: Cluster) -> None:
    """Where the cluster goes on, and what can be done with it."""
    where, directory = cluster.bootstrap_servers, shlex.quote(str(cluster.directory))
    console.print(f"The cluster goes on at [bold]{where}[/]. Try:")
    _say_commands(
        console,
        f"local status --dir {directory}",
        f"consume demo.packages --from-beginning --until-end --max-messages 3 -b {where}",
    )
    console.print("Stop it:")
    _say_commands(console, f"local down --delete-data --dir {directory}")


def _say_next(console: Console) -> None:
    """Commands for whoever has seen it work."""
    console.print("KEEP=1 make demo leaves it running. To start a cluster of your own:")
    manifest = shlex.quote(str(ROOT / "manifests" / "examples" / "quickstart.yaml"))
    _say_commands(console, f"local up {manifest}", "local status", "local down")
    console.print("make install puts barnabas on your PATH.")


def _say_commands(console: Console, *commands: str) -> None:
    """Print commands as they can be pasted: nobody here has activated an environment."""
    program = shlex.quote(str(Path(sys.executable).with_name("barnabas")))
    for command in commands:
        console.print(f"  {program} {command}", soft_wrap=True, markup=False)


def _passages_table(passages: list[Passage]) -> Table:
    """Records and megabytes per second of each stream, both ways."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stream")
    for title in ("records", "MB", "sent/s", "MB/s", "read/s", "MB/s"):
        table.add_column(title, justify="right")
    for passage in passages:
        records, megabytes = len(passage.stream.records), passage.stream.size / 1e6
        table.add_row(
            passage.stream.title,
            f"{records:,}",
            f"{megabytes:.1f}",
            *(
                text
                for seconds in (passage.sending_s, passage.reading_s)
                for text in (f"{records / seconds:,.0f}", f"{megabytes / seconds:.1f}")
            ),
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
