"""Filling a topic with equal batches before it is read."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.clients import run_worker
from benchmarks.errors import BenchmarkError
from benchmarks.targets import Broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Preloaded:
    """A partition 0 full of equal batches."""

    topic: str
    records: int
    batch_bytes: int
    batch_records: int


def preload(
    broker: Broker,
    topic: str,
    *,
    volume: int,
    batch_bytes: int = 64 << 10,
    record_bytes: int = 1024,
) -> Preloaded:
    """Write about `volume` bytes to partition 0 of `topic` with the raw client."""
    requests = max(1, volume // batch_bytes)
    report, _ = run_worker(
        "raw",
        produce_spec(
            topic,
            batch_bytes=batch_bytes,
            record_bytes=record_bytes,
            depth=5,
            requests=requests,
            seconds=60,
        ),
        broker,
    )
    if report["requests"] != requests:
        raise BenchmarkError(f"preloading took too long: {report['requests']} of {requests}")
    return Preloaded(
        topic=topic,
        records=report["records"],
        batch_bytes=report["bytes"] // requests,
        batch_records=report["records"] // requests,
    )


def produce_spec(
    topic: str,
    *,
    requests: int,
    seconds: float,
    batch_bytes: int = 270,
    record_bytes: int = 200,
    depth: int = 1,
    connections: int = 1,
    idle: int = 0,
    partitions: int = 1,
    partitions_per_request: int = 1,
    acks: int = -1,
) -> dict[str, object]:
    """What the raw worker is to produce; by default one record of 200 bytes at a time."""
    return {
        "mode": "produce",
        "topic": topic,
        "requests": requests,
        "seconds": seconds,
        "batch_bytes": batch_bytes,
        "record_bytes": record_bytes,
        "depth": depth,
        "connections": connections,
        "idle": idle,
        "partitions": partitions,
        "partitions_per_request": partitions_per_request,
        "acks": acks,
    }
