"""Many small requests: one record of 200 bytes each, few or many in flight, idle ones beside."""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks.cases.preload import produce_spec
from benchmarks.clients import run_worker
from benchmarks.metering import requests_sample
from benchmarks.model import Case, Metric, Sample, Scale
from benchmarks.targets import Target
from benchmarks.topics import topic

# Bounds what a very fast broker writes in the seconds given.
REQUESTS_MAX: Final = 300_000


def small_requests(
    target: Target,
    scale: Scale,
    *,
    row: str,
    depth: int,
    connections: int = 1,
    idle: int = 0,
    latency: bool = False,
) -> list[Sample]:
    """Produce single records with acks=1; latency percentiles where they mean something."""
    with topic(target.broker, "small") as name:
        report, meter = run_worker(
            "raw",
            produce_spec(
                name,
                requests=scale.of(REQUESTS_MAX, 5_000),
                seconds=scale.seconds,
                depth=depth,
                connections=connections,
                idle=idle,
                acks=1,
            ),
            target.broker,
        )
    percentiles = {Metric.LATENCY_P50: report["p50_us"], Metric.LATENCY_P99: report["p99_us"]}
    return [
        requests_sample(
            row,
            meter,
            requests=report["requests"],
            seconds=report["seconds"],
            values=percentiles if latency else None,
        )
    ]


def _case(name: str, row: str, *, depth: int, connections: int, latency: bool, idle: int) -> Case:
    run = partial(
        small_requests, row=row, depth=depth, connections=connections, latency=latency, idle=idle
    )
    return Case(name, row, run)


CASES: Final = (
    _case(
        "latency",
        "one record a request, one in flight",
        depth=1,
        connections=1,
        latency=True,
        idle=0,
    ),
    _case(
        "pipelined",
        "one record a request, 1 connection x 5 in flight",
        depth=5,
        connections=1,
        latency=False,
        idle=0,
    ),
    _case(
        "pipelined-deep",
        "one record a request, 1 connection x 100 in flight",
        depth=100,
        connections=1,
        latency=False,
        idle=0,
    ),
    _case(
        "pipelined-wide",
        "one record a request, 10 connections x 5 in flight",
        depth=5,
        connections=10,
        latency=False,
        idle=0,
    ),
    _case(
        "idle-connections",
        "100 active connections, one in flight each, and 1,000 idle",
        depth=1,
        connections=100,
        latency=True,
        idle=1000,
    ),
)
