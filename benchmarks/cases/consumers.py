"""Consumers people use, on records in the page cache: the Java client and librdkafka.

There are no groups in these cases: partitions are assigned. Each client reads the same topic
several times over, so that its own start-up does not dominate.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from benchmarks.cases.preload import Preloaded, preload
from benchmarks.clients import run_java, run_worker
from benchmarks.metering import megabytes_sample
from benchmarks.model import Case, Sample, Scale
from benchmarks.targets import Broker, Endpoint, Target
from benchmarks.topics import topic
from tests.oracle.apache import DEFAULT_VERSION

FETCH_SIZES: Final = ((1 << 20, "1 MiB"), (16 << 20, "16 MiB"))


def java_consume(
    row: str,
    broker: Endpoint,
    name: str,
    *,
    records: int,
    passes: int,
    settings: Sequence[str] = (),
) -> Sample:
    """Read the whole topic `passes` times with the Java consumer."""
    output, meter = run_java(
        [broker.pid],
        "AssignConsumer",
        *(broker.bootstrap, name, str(records), str(passes), *settings),
        version=DEFAULT_VERSION,
    )
    report = json.loads(output.splitlines()[-1])
    seconds = report["ms"] / 1e3
    return megabytes_sample(
        row,
        meter,
        moved_bytes=report["bytes"],
        seconds=seconds,
    )


def _java(broker: Broker, loaded: Preloaded, passes: int) -> list[Sample]:
    return [
        java_consume(
            f"Java consumer, fetches of {title}",
            broker,
            loaded.topic,
            records=loaded.records,
            passes=passes,
            settings=[f"max.partition.fetch.bytes={size}", "max.poll.records=5000"],
        )
        for size, title in FETCH_SIZES
    ]


def _librdkafka(broker: Broker, loaded: Preloaded, passes: int) -> list[Sample]:
    samples = []
    for size, title in FETCH_SIZES:
        report, meter = run_worker(
            "librdkafka",
            {
                "mode": "consume",
                "topic": loaded.topic,
                "records": loaded.records,
                "passes": passes,
                "config": {
                    "fetch.message.max.bytes": size,
                    "queued.max.messages.kbytes": 65536,
                },
            },
            broker,
        )
        samples.append(
            megabytes_sample(
                f"librdkafka consumer, fetches of {title}",
                meter,
                moved_bytes=report["bytes"],
                seconds=report["seconds"],
            )
        )
    return samples


def notes(target: Target, scale: Scale) -> list[Sample]:
    """Records of 200 bytes in batches of 16 KiB, as the notes' producer leaves them."""
    with topic(target.broker, "notes-read") as name:
        volume = scale.of(100_000_000, 4_000_000)
        loaded = preload(target.broker, name, volume=volume, batch_bytes=16 << 10, record_bytes=200)
        return [
            java_consume(
                "Java consumer, 500,000 x 200 B",
                target.broker,
                name,
                records=loaded.records,
                passes=scale.of(5, 1),
            )
        ]


def large(target: Target, scale: Scale) -> list[Sample]:
    """Records of 1 KiB in batches of 64 KiB, by two clients and two fetch sizes."""
    with topic(target.broker, "read") as name:
        loaded = preload(target.broker, name, volume=scale.of(256_000_000, 16_000_000))
        passes = scale.of(3, 1)
        return [
            *_java(target.broker, loaded, passes),
            *_librdkafka(target.broker, loaded, scale.of(2, 1)),
        ]


CASES: Final = (
    Case("notes-consumer", "Java consumer, 200 B records", notes),
    Case("consumers", "Java and librdkafka consumers, 1 KiB records", large),
)
