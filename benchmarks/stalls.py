"""What a slow disk costs: producers in both durability profiles, and a bystander.

    .venv/bin/python -m benchmarks.stalls [--json]

A broker process runs on the disk as it is, and on one whose every fsync takes 500 ms longer. One
connection produces 1 KiB records one by one, with acks=all; another asks for the API versions all
the time, and the longest it waited for an answer is how long the event loop did anything else.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire
from tests.clients.brokers import Barnabas
from tests.faults.disk import FaultyDisk

SECONDS: Final = 4.0
SLOW_MS: Final = 500
RECORD: Final = build_batch([(1000, None, b"." * 1024, ())])
SETTINGS: Final = {
    "broker.id": "0",
    "log.segment.bytes": "200000",
    "log.flush.interval.messages": "500",
    "log.flush.offset.checkpoint.interval.ms": "500",
}


def client(broker: Barnabas) -> Wire:
    """A connection that sends at once."""
    wire = Wire(int(broker.bootstrap.rpartition(":")[2]))
    wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return wire


def latencies_ms(broker: Barnabas, until: float, *, produce: bool) -> list[float]:
    """Round trips of one connection, one after the other."""
    found = []
    with client(broker) as wire:
        while time.monotonic() < until:
            began = time.perf_counter()
            if produce:
                assert wire.produce("t", RECORD).error_code == 0
            else:
                wire.ask(ApiVersionsRequest(), 0)
            found.append((time.perf_counter() - began) * 1000)
    return found


def measure(directory: Path, durability: str, delay_ms: int) -> dict[str, object]:
    """One broker under one load."""
    logs = directory / "logs"
    with FaultyDisk(logs) as disk:
        settings = SETTINGS | {"log.dirs": str(logs), "barnabas.durability": durability}
        with Barnabas(directory, settings, disk.environment) as broker:
            with client(broker) as admin:
                admin.create_topic("t")
                admin.produce("t", RECORD)
            disk.faults.sync_delay_ms = delay_ms
            syncs = disk.faults.syncs
            until = time.monotonic() + SECONDS
            probes: list[float] = []
            probe = threading.Thread(
                target=lambda: probes.extend(latencies_ms(broker, until, produce=False))
            )
            probe.start()
            produced = latencies_ms(broker, until, produce=True)
            probe.join()
            syncs = disk.faults.syncs - syncs
            disk.heal()
            broker.stop()
    return {
        "durability": durability,
        "fsync": f"+{delay_ms} ms" if delay_ms else "as it is",
        "records/s": round(len(produced) / SECONDS),
        "p50 ms": round(statistics.median(produced), 2),
        "p99 ms": round(sorted(produced)[int(len(produced) * 0.99)], 2),
        "syncs": syncs,
        "longest stall ms": round(max(probes), 1),
    }


def main(arguments: list[str]) -> int:
    """Measure all four and print a table."""
    rows = []
    for durability in ("replicated", "fsync"):
        for delay_ms in (0, SLOW_MS):
            with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as directory:
                rows.append(measure(Path(directory).resolve(), durability, delay_ms))
    if "--json" in arguments:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return 0
    sys.stdout.write("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]) + "\n")
    for row in rows:
        sys.stdout.write("| " + " | ".join(map(str, row.values())) + " |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
