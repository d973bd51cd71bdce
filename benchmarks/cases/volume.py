"""Bulk by the raw client: batches of 1 KiB records produced, page cache fetched."""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks.cases.preload import preload, produce_spec
from benchmarks.clients import run_worker
from benchmarks.metering import megabytes_sample
from benchmarks.model import Case, Metric, Sample, Scale
from benchmarks.targets import Target
from benchmarks.topics import topic

FETCH_SIZES: Final = ((64 << 10, "64 KiB"), (1 << 20, "1 MiB"), (16 << 20, "16 MiB"))


def produce(
    target: Target, scale: Scale, *, row: str, batch_bytes: int, connections: int = 1
) -> list[Sample]:
    """Full batches, five requests in flight on each connection."""
    volume = scale.of(400_000_000, 20_000_000)
    with topic(target.broker, "batches", partitions=connections) as name:
        report, meter = run_worker(
            "raw",
            produce_spec(
                name,
                requests=volume // batch_bytes,
                seconds=scale.seconds * 2,
                batch_bytes=batch_bytes,
                record_bytes=1024,
                depth=5,
                connections=connections,
                partitions=connections,
            ),
            target.broker,
        )
    return [megabytes_sample(row, meter, moved_bytes=report["bytes"], seconds=report["seconds"])]


def fetch(target: Target, scale: Scale) -> list[Sample]:
    """A preloaded partition read over and over, one request in flight, records dropped."""
    samples = []
    with topic(target.broker, "fetch") as name:
        loaded = preload(target.broker, name, volume=scale.of(256_000_000, 34_000_000))
        for size, title in FETCH_SIZES:
            report, meter = run_worker(
                "raw",
                {
                    "mode": "fetch",
                    "topic": name,
                    "max_bytes": size,
                    "batch_bytes": loaded.batch_bytes,
                    "batch_records": loaded.batch_records,
                    "end_offset": loaded.records,
                    "seconds": scale.seconds / 2,
                },
                target.broker,
            )
            samples.append(
                megabytes_sample(
                    f"raw fetch of {title} from the page cache",
                    meter,
                    moved_bytes=report["bytes"],
                    seconds=report["seconds"],
                    values={Metric.LATENCY_P50: report["p50_us"]},
                )
            )
    return samples


def _produce_case(name: str, title: str, batch_bytes: int, connections: int = 1) -> Case:
    run = partial(produce, row=title, batch_bytes=batch_bytes, connections=connections)
    return Case(name, title, run)


CASES: Final = (
    _produce_case("raw-16k", "raw produce, 16 KiB batches, 1 connection x 5", 16 << 10),
    _produce_case("raw-64k", "raw produce, 64 KiB batches, 1 connection x 5", 64 << 10),
    _produce_case(
        "raw-64k-wide", "raw produce, 64 KiB batches, 4 connections x 5", 64 << 10, connections=4
    ),
    _produce_case("raw-1m", "raw produce, 1 MiB batches, 1 connection x 5", 1 << 20),
    Case("raw-fetch", "raw fetches of 64 KiB, 1 MiB and 16 MiB", fetch),
)
