"""A thousand partitions: wide requests of the raw client, and the Java clients over all of them."""

from __future__ import annotations

from typing import Final

from benchmarks.cases.consumers import java_consume
from benchmarks.cases.preload import produce_spec
from benchmarks.cases.producers import java_producer
from benchmarks.clients import run_worker
from benchmarks.metering import megabytes_sample, requests_sample
from benchmarks.model import Case, Sample, Scale
from benchmarks.targets import Target
from benchmarks.topics import topic

PARTITIONS: Final = 1000


def raw(target: Target, scale: Scale) -> list[Sample]:
    """1 KiB to each of 1,000 partitions, in one request, 50 a request and one a request."""
    partitions = scale.of(PARTITIONS, 100)
    samples = []
    with topic(target.broker, "wide", partitions=partitions) as name:
        for per_request, depth in ((partitions, 1), (50, 5), (1, 5)):
            spec = produce_spec(
                name,
                requests=scale.of(150_000, 3_000) // per_request,
                seconds=scale.seconds,
                batch_bytes=1024 + 80,
                record_bytes=1024,
                depth=depth,
                partitions=partitions,
                partitions_per_request=per_request,
            )
            if per_request == partitions:
                # The first touch of every segment and, after 4 KiB, of its indexes is a cost of
                # its own, and not of these rows.
                run_worker("raw", {**spec, "requests": 8, "seconds": 60}, target.broker)
            report, meter = run_worker("raw", spec, target.broker)
            samples.append(
                requests_sample(
                    f"1,000 partitions, {per_request if per_request < partitions else 'all'}"
                    " in a request, 1 KiB each",
                    meter,
                    requests=report["requests"],
                    seconds=report["seconds"],
                )
            )
    return samples


def java(target: Target, scale: Scale) -> list[Sample]:
    """Java producer twice, on new segments and again, then the Java consumer, batches of 4 KiB."""
    partitions = scale.of(PARTITIONS, 100)
    records = scale.of(40_000, 3_000)
    samples = []
    with topic(target.broker, "java-wide", partitions=partitions) as name:
        for which in ("first run on the topic", "second run"):
            summary, meter = java_producer(
                target.broker, name, "batch.size=4096", records=records, record_bytes=1024
            )
            samples.append(
                megabytes_sample(
                    f"Java producer, 1,000 partitions, {which}",
                    meter,
                    moved_bytes=records * 1024,
                    seconds=summary["records"] / summary["records_per_s"],
                )
            )
        samples.append(
            java_consume(
                "Java consumer, 1,000 partitions",
                target.broker,
                name,
                records=records * 2,
                passes=scale.of(2, 1),
            )
        )
    return samples


CASES: Final = (
    Case("raw-partitions", "1,000 partitions by the raw client", raw, warm_ups=0),
    Case("java-partitions", "1,000 partitions by the Java clients", java, warm_ups=0),
)
