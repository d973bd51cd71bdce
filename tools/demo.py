"""`make demo`: a broker, this machine's own data through it and back, every byte compared.

Starts the embedded broker in a temporary directory, sends what `demo_input` finds with librdkafka,
reads it all back, compares each record by its digest, measures as it goes and reports. The exit
code is 1 when anything differs. KEEP=1 leaves the broker running and says where.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn
from rich.table import Table

from barnabas_broker.testing import Broker, BrokerError
from tools.demo_input import Stream, streams

MESSAGE_BYTES_MAX = 32 << 20
ROUND_TRIPS = 1_000
ROUND_TRIPS_WARM_UP = 50
ROUND_TRIP_TOPIC = "demo.latency"
# Without a single record for so long, something is wrong and waiting does not mend it.
STALL_S = 30.0
BATCH_RECORDS = 1_000

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

    startup_s: float
    rss_at_start: int
    rss_at_end: int = 0
    passages: list[Passage] = field(default_factory=list)
    round_trips_ms: list[float] = field(default_factory=list)


def main() -> int:
    """Run the demonstration; the exit code says whether every byte came back."""
    console = Console(highlight=False)
    keep = os.environ.get("KEEP", "") not in ("", "0")
    directory = Path(tempfile.mkdtemp(prefix="barnabas-demo-"))
    settings = {
        "message.max.bytes": MESSAGE_BYTES_MAX,
        "replica.fetch.max.bytes": MESSAGE_BYTES_MAX,
    }
    broker = Broker(settings, directory=directory)
    succeeded = False
    try:
        with console.status("starting a broker"):
            broker.start()
        figures = _demonstrate(console, broker)
        _report(console, figures, broker, keep=keep)
        succeeded = True
    except (DemoError, BrokerError, KafkaException) as error:
        console.print(f"[bold red]The demonstration failed:[/] {error}")
    except KeyboardInterrupt:
        console.print("Interrupted.")
    finally:
        if not (keep and succeeded):
            broker.stop()
            shutil.rmtree(directory, ignore_errors=True)
    return 0 if succeeded else 1


def _demonstrate(console: Console, broker: Broker) -> Figures:
    """Send, read, compare and measure."""
    figures = Figures(startup_s=broker.startup_s, rss_at_start=_rss(broker.pid))
    console.print(
        f"A broker is listening on [bold]{broker.bootstrap_servers}[/], "
        f"{broker.startup_s * 1000:.0f} ms after its command was given."
    )
    with console.status("looking for data on this machine"):
        found = streams(MESSAGE_BYTES_MAX)
    broker.create_topic(ROUND_TRIP_TOPIC, partitions=1)
    for stream in found:
        broker.create_topic(stream.topic, partitions=stream.partitions, config=stream.config)
    figures.passages = [Passage(stream) for stream in found]
    sent = {}
    with _progress(console) as progress:
        for passage in figures.passages:
            bar = _bar(progress, "send", passage.stream)
            sent[passage.stream.topic], passage.sending_s = send(
                broker.bootstrap_servers, passage.stream, bar
            )
        for passage in figures.passages:
            bar = _bar(progress, "read", passage.stream)
            expected = sent[passage.stream.topic]
            passage.reading_s = read_back(broker.bootstrap_servers, passage.stream, expected, bar)
    records = sum(len(stream.records) for stream in found)
    size = sum(stream.size for stream in found)
    console.print(
        f"All {records:,} records, {size / 1e6:.0f} MB, came back; every byte is the same."
    )
    with console.status("measuring round trips"):
        figures.round_trips_ms = round_trips(broker.bootstrap_servers)
    figures.rss_at_end = _rss(broker.pid)
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
            "message.max.bytes": MESSAGE_BYTES_MAX * 2,  # The broker's limit is the one to meet.
            "queue.buffering.max.kbytes": 256 << 10,
            "linger.ms": 5,
            "log_level": 3,
        }
    )
    # The library takes half a second over its producer id; that is nobody's throughput.
    producer.produce(ROUND_TRIP_TOPIC, b"hello")
    producer.flush(STALL_S)
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
    waiting = producer.flush(STALL_S)
    seconds = time.perf_counter() - began
    if failures:
        raise DemoError(f"{len(failures)} records of {stream.topic} refused: {failures[0].str()}")
    if waiting or len(where) != len(stream.records):
        raise DemoError(f"{len(where)} of {len(stream.records)} records of {stream.topic} arrived")
    return where, seconds


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
    open_partitions = set(range(stream.partitions))
    began = last = last_record = time.perf_counter()
    try:
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


def _rss(pid: int) -> int:
    """The resident memory of a process in bytes, as `ps` knows it on Linux and macOS."""
    ps = shutil.which("ps")
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    if ps is None:
        return 0
    asked = subprocess.run([ps, "-o", "rss=", "-p", str(pid)], capture_output=True, check=False)
    return int(asked.stdout or b"0") << 10


def _report(console: Console, figures: Figures, broker: Broker, *, keep: bool) -> None:
    """The figures, where to connect and what to try next."""
    console.print()
    console.print(_passages_table(figures.passages))
    console.print()
    percentiles = statistics.quantiles(figures.round_trips_ms, n=100)
    start, end = figures.rss_at_start / 1e6, figures.rss_at_end / 1e6
    trips = f"p50 {percentiles[49]:.2f} ms, p99 {percentiles[98]:.2f} ms"
    for name, text in (
        ("start-up", f"{figures.startup_s * 1000:.0f} ms from command to ready"),
        ("round trip", f"{trips} ({len(figures.round_trips_ms):,} one by one, acks=all)"),
        ("memory", f"{start:.0f} MB after start, {end:.0f} MB after all this"),
    ):
        console.print(f"[bold]{name:<12}[/]{text}")
    console.print("One Python client beside the broker on this machine: a demo, not a benchmark.")
    console.print()
    if keep:
        where = broker.bootstrap_servers
        console.print(f"The broker goes on at [bold]{where}[/]; stop it with: kill {broker.pid}")
        console.print(f"Its files are in {broker.directory}; they are yours to delete.")
        console.print(f"Try:  barnabas topics describe -b {where}")
        console.print(f"      barnabas consume demo.packages --from-beginning -b {where}")
    else:
        console.print("Nothing is left running. KEEP=1 make demo leaves the broker; or start one:")
        console.print("      barnabas broker start      and connect any client to localhost:9092")


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
