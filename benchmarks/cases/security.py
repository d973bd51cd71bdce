"""Clients over SASL_SSL (TLS 1.3, SCRAM-SHA-512), new connections, and what ACLs cost."""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks.cases.consumers import java_consume
from benchmarks.cases.preload import preload
from benchmarks.cases.producers import java_sample
from benchmarks.cases.requests import small_requests
from benchmarks.clients import run_worker
from benchmarks.errors import BenchmarkError
from benchmarks.metering import handshakes_sample, megabytes_sample, memory_mib
from benchmarks.model import Case, Metric, Sample, Scale
from benchmarks.secured import PASSWORD, USER, Security, listener
from benchmarks.targets import Target
from benchmarks.topics import topic

AT_ONCE: Final = 50
"""New connections under way; fewer would have the broker wait for the client's cryptography."""
KEPT: Final = 1000
BATCHES: Final = ("acks=-1", "batch.size=65536", "linger.ms=5")
FETCHES: Final = ("max.partition.fetch.bytes=1048576", "max.poll.records=5000")


def _security(target: Target) -> Security:
    if not isinstance(target.setup, Security):
        raise BenchmarkError(f"{target.label} has no listener with TLS")
    return target.setup


def java_producer(target: Target, scale: Scale) -> list[Sample]:
    """Records of 1 KiB in batches of 64 KiB."""
    with topic(target.broker, "tls") as name:
        return [
            java_sample(
                "Java producer over SASL_SSL, 1 KiB records, 64 KiB batches",
                listener(target.broker, "SASL_SSL"),
                name,
                *BATCHES,
                *("--producer.config", str(_security(target).java_properties)),
                records=scale.of(300_000, 60_000),
                record_bytes=1024,
            )
        ]


def librdkafka_producer(target: Target, scale: Scale) -> list[Sample]:
    """The same through librdkafka's Python binding."""
    with topic(target.broker, "tls") as name:
        report, meter = run_worker(
            "librdkafka",
            {
                "mode": "produce",
                "topic": name,
                "records": scale.of(300_000, 60_000),
                "record_bytes": 1024,
                "config": {
                    **_security(target).librdkafka,
                    "acks": "all",
                    "batch.size": 65536,
                    "linger.ms": 5,
                },
            },
            listener(target.broker, "SASL_SSL"),
        )
    return [
        megabytes_sample(
            "librdkafka producer over SASL_SSL, 1 KiB records, 64 KiB batches",
            meter,
            moved_bytes=report["bytes"],
            seconds=report["seconds"],
        )
    ]


def consumers(target: Target, scale: Scale) -> list[Sample]:
    """Both clients read the same topic, from the page cache."""
    security, secured = _security(target), listener(target.broker, "SASL_SSL")
    with topic(target.broker, "tls-read") as name:
        loaded = preload(target.broker, name, volume=scale.of(200_000_000, 50_000_000))
        java = java_consume(
            "Java consumer over SASL_SSL, fetches of 1 MiB",
            secured,
            name,
            records=loaded.records,
            passes=scale.of(3, 2),
            settings=[*FETCHES, *security.java_client],
        )
        report, meter = run_worker(
            "librdkafka",
            {
                "mode": "consume",
                "topic": name,
                "records": loaded.records,
                "passes": 2,
                "config": {
                    **security.librdkafka,
                    "fetch.message.max.bytes": 1 << 20,
                    "queued.max.messages.kbytes": 65536,
                },
            },
            secured,
        )
    librdkafka = megabytes_sample(
        "librdkafka consumer over SASL_SSL, fetches of 1 MiB",
        meter,
        moved_bytes=report["bytes"],
        seconds=report["seconds"],
    )
    return [java, librdkafka]


def handshakes(
    target: Target, scale: Scale, *, row: str, authenticated: bool, kept: bool = False
) -> list[Sample]:
    """New connections for some seconds, each closed once it is made; or a thousand that stay."""
    security = _security(target)
    before, _ = memory_mib(target.broker.pid)
    report, meter = run_worker(
        "handshakes",
        {
            "trust": str(security.trust),
            "user": USER if authenticated else "",
            "password": PASSWORD,
            "at_once": AT_ONCE,
            "kept": kept,
            "connections": KEPT if kept else scale.of(20_000, 2_000),
            "seconds": 60.0 if kept else scale.seconds,
        },
        listener(target.broker, "SASL_SSL" if authenticated else "SSL"),
    )
    count = report["connections"]
    grown = max(meter.rss - before, 0.0) * 1024 / count
    return [
        handshakes_sample(
            row,
            meter,
            handshakes=count,
            seconds=report["seconds"],
            values={Metric.MEMORY_PER_CONNECTION: grown} if kept else None,
        )
    ]


def plain_producer(target: Target, scale: Scale) -> list[Sample]:
    """The Java producer on the plain listener."""
    with topic(target.broker, "plain") as name:
        return [
            java_sample(
                "Java producer, plain, 1 KiB records",
                target.broker,
                name,
                *BATCHES,
                records=scale.of(400_000, 60_000),
                record_bytes=1024,
            )
        ]


def plain_consumer(target: Target, scale: Scale) -> list[Sample]:
    """The Java consumer on the plain listener."""
    with topic(target.broker, "plain-read") as name:
        loaded = preload(target.broker, name, volume=scale.of(200_000_000, 50_000_000))
        return [
            java_consume(
                "Java consumer, plain, fetches of 1 MiB",
                target.broker,
                name,
                records=loaded.records,
                passes=scale.of(5, 2),
                settings=FETCHES,
            )
        ]


def _handshake_case(name: str, row: str, *, authenticated: bool, kept: bool = False) -> Case:
    return Case(name, row, partial(handshakes, row=row, authenticated=authenticated, kept=kept))


CONNECTED: Final = (
    Case("tls-java-producer", "Java producer over SASL_SSL", java_producer),
    Case("tls-librdkafka-producer", "librdkafka producer over SASL_SSL", librdkafka_producer),
    Case("tls-consumers", "Java and librdkafka consumers over SASL_SSL", consumers),
    _handshake_case("tls-handshakes", "TLS handshakes, 50 at a time", authenticated=False),
    _handshake_case(
        "scram-handshakes", "TLS handshakes with SCRAM-SHA-512, 50 at a time", authenticated=True
    ),
    _handshake_case(
        "kept-connections",
        "1,000 connections with SCRAM-SHA-512 that stay",
        authenticated=True,
        kept=True,
    ),
)
"""Beside Apache Kafka."""

AUTHORIZED: Final = (
    Case("acls-producer", "Java producer, plain", plain_producer),
    Case("acls-consumer", "Java consumer, plain", plain_consumer),
    Case(
        "acls-requests",
        "small requests, plain",
        partial(
            small_requests,
            row="one record a request, plain, 10 connections x 5 in flight",
            depth=5,
            connections=10,
        ),
    ),
)
"""With ACLs and without, of the same broker."""
