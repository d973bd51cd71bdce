"""Start-up and memory: fresh brokers, empty and with a thousand partitions.

Start-up is from the exec of the broker's process to its first answered ApiVersions request;
Apache's ZooKeeper runs already and is not counted.
"""

from __future__ import annotations

import socket
import time
from typing import Final

from benchmarks.errors import BenchmarkError
from benchmarks.metering import cpu_seconds, memory_mib
from benchmarks.model import Case, Metric, Sample, Scale
from benchmarks.targets import Broker, Target
from benchmarks.topics import create
from benchmarks.workers.frames import api_versions_frame

DEADLINE: Final = 90.0
# Memory is read once a broker that has just started or created topics has had time to calm down.
SETTLE_SECONDS: Final = 2.0


def start_and_memory(target: Target, scale: Scale) -> list[Sample]:
    """An empty start, its memory; 1,000 partitions created, memory; a start with those."""
    partitions = scale.of(1000, 50)
    with target.fresh() as broker:
        samples = [
            _start(broker, "start, empty"),
            _memory(broker, "memory, idle after an empty start"),
        ]
        create(broker, "bench-memory", partitions=partitions)
        samples.append(_memory(broker, "memory, idle with 1,000 partitions created"))
        broker.stop()
        samples.append(_start(broker, "start, clean, with 1,000 partitions"))
        samples.append(_memory(broker, "memory, idle after a start with 1,000 partitions"))
    return samples


def _start(broker: Broker, row: str) -> Sample:
    broker.prepare()
    begin = time.perf_counter()
    broker.launch()
    while not _answers(broker.bootstrap):
        if time.perf_counter() - begin > DEADLINE or not broker.running:
            raise BenchmarkError(f"{row}: no answer in {DEADLINE:g} s, or the process ended")
        time.sleep(0.001)
    seconds = time.perf_counter() - begin
    return Sample(
        row=row,
        values={Metric.START: seconds * 1e3},
        detail={"broker_cpu_seconds": cpu_seconds(broker.pid)},
    )


def _answers(bootstrap: str) -> bool:
    host, _, port = bootstrap.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(api_versions_frame())
            return len(connection.recv(10, socket.MSG_WAITALL)) == 10
    except OSError:
        return False


def _memory(broker: Broker, row: str) -> Sample:
    time.sleep(SETTLE_SECONDS)
    rss, peak = memory_mib(broker.pid)
    return Sample(row=row, values={Metric.RSS: rss}, detail={"peak_mib": peak})


CASES: Final = (
    Case("startup", "start-up and memory of fresh brokers", start_and_memory, fresh=True),
)
