"""Producers people use: Apache's ProducerPerformance, and librdkafka."""

from __future__ import annotations

from typing import Final

from benchmarks.clients import producer_performance_report, run_java, run_worker
from benchmarks.metering import Meter, megabytes_sample
from benchmarks.model import Case, Sample, Scale
from benchmarks.targets import Endpoint, Target
from benchmarks.topics import topic
from tests.oracle.apache import DEFAULT_VERSION

PRODUCER_PERFORMANCE: Final = "org.apache.kafka.tools.ProducerPerformance"


def java_producer(
    broker: Endpoint, name: str, *settings: str, records: int, record_bytes: int
) -> tuple[dict[str, float], Meter]:
    """Run ProducerPerformance as fast as it can; returns its summary and the broker's meter."""
    output, meter = run_java(
        [broker.pid],
        PRODUCER_PERFORMANCE,
        *("--topic", name, "--num-records", str(records), "--record-size", str(record_bytes)),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={broker.bootstrap}"),
        *settings,
        version=DEFAULT_VERSION,
    )
    return producer_performance_report(output), meter


def java_sample(
    row: str, broker: Endpoint, name: str, *settings: str, records: int, record_bytes: int
) -> Sample:
    summary, meter = java_producer(
        broker, name, *settings, records=records, record_bytes=record_bytes
    )
    return megabytes_sample(
        row,
        meter,
        moved_bytes=records * record_bytes,
        seconds=summary["records"] / summary["records_per_s"],
    )


def notes(target: Target, scale: Scale) -> list[Sample]:
    """The case of the notes: 500,000 records of 200 bytes, acknowledged by all."""
    with topic(target.broker, "notes") as name:
        row = "Java producer, 500,000 x 200 B, acks=-1"
        records = scale.of(500_000, 20_000)
        return [java_sample(row, target.broker, name, "acks=-1", records=records, record_bytes=200)]


def java_1k(target: Target, scale: Scale) -> list[Sample]:
    """Records of 1 KiB in batches of 64 KiB, plain and compressed with lz4."""
    samples = []
    for codec in ("none", "lz4"):
        with topic(target.broker, f"java-{codec}") as name:
            samples.append(
                java_sample(
                    f"Java producer, 1 KiB records, 64 KiB batches, {codec}",
                    target.broker,
                    name,
                    *("acks=-1", "batch.size=65536", "linger.ms=5", f"compression.type={codec}"),
                    records=scale.of(500_000, 5_000),
                    record_bytes=1024,
                )
            )
    return samples


def librdkafka(target: Target, scale: Scale) -> list[Sample]:
    """Records of 1 KiB in batches of 64 KiB through librdkafka's Python binding."""
    with topic(target.broker, "librdkafka") as name:
        report, meter = run_worker(
            "librdkafka",
            {
                "mode": "produce",
                "topic": name,
                "records": scale.of(500_000, 5_000),
                "record_bytes": 1024,
                "config": {"acks": "all", "batch.size": 65536, "linger.ms": 5},
            },
            target.broker,
        )
    return [
        megabytes_sample(
            "librdkafka producer, 1 KiB records, 64 KiB batches",
            meter,
            moved_bytes=report["bytes"],
            seconds=report["seconds"],
        )
    ]


CASES: Final = (
    Case("notes", "ProducerPerformance, 500,000 x 200 B", notes),
    Case("java-producer", "Java producer, 1 KiB records", java_1k),
    Case("librdkafka-producer", "librdkafka producer, 1 KiB records", librdkafka),
)
