"""What is asked of each row: Barnabas against Apache Kafka, one broker each, two cores.

A ratio bar compares medians; an absolute bar is about Barnabas alone. A row without a bar is
measured all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.model import Metric


@dataclass(frozen=True, slots=True)
class Bar:
    """A bound on the ratio to Apache Kafka, or on the figure itself."""

    bound: float
    at_least: bool
    absolute: bool = False

    def met(self, value: float, ratio: float) -> bool:
        """Whether Barnabas's median `value`, at `ratio` to Apache's, is good enough."""
        judged = value if self.absolute else ratio
        return judged >= self.bound if self.at_least else judged <= self.bound

    def __str__(self) -> str:
        unit = "" if self.absolute else "x"
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}{unit}"


def _volume(rate: float, cpu: float) -> dict[Metric, Bar]:
    return {Metric.MB_RATE: Bar(rate, True), Metric.CPU_PER_MB: Bar(cpu, False)}


def _requests(rate: float, cpu: float) -> dict[Metric, Bar]:
    return {Metric.REQUEST_RATE: Bar(rate, True), Metric.CPU_PER_REQUEST: Bar(cpu, False)}


def _rebalance(time: float, cpu: float) -> dict[Metric, Bar]:
    return {Metric.REBALANCE: Bar(time, False), Metric.CPU_PER_REBALANCE: Bar(cpu, False)}


def _memory(mib: float) -> dict[Metric, Bar]:
    return {Metric.RSS: Bar(mib, False, absolute=True)}


def _start(milliseconds: float) -> dict[Metric, Bar]:
    return {Metric.START: Bar(milliseconds, False, absolute=True)}


def _handshakes(rate: float, cpu: float) -> dict[Metric, Bar]:
    return {Metric.HANDSHAKE_RATE: Bar(rate, True), Metric.CPU_PER_HANDSHAKE: Bar(cpu, False)}


ONE_BROKER: Final[dict[str, dict[Metric, Bar]]] = {
    "Java producer, 500,000 x 200 B, acks=-1": _volume(1.15, 0.7),
    "Java producer, 1 KiB records, 64 KiB batches, none": _volume(1.1, 0.65),
    "Java producer, 1 KiB records, 64 KiB batches, lz4": _volume(1.0, 0.8),
    "librdkafka producer, 1 KiB records, 64 KiB batches": _volume(1.6, 0.5),
    "one record a request, one in flight": {
        Metric.LATENCY_P50: Bar(0.9, False),
        Metric.LATENCY_P99: Bar(0.75, False),
        Metric.CPU_PER_REQUEST: Bar(0.6, False),
    },
    "one record a request, 1 connection x 100 in flight": _requests(6, 0.3),
    "one record a request, 10 connections x 5 in flight": _requests(1.6, 0.3),
    "raw produce, 16 KiB batches, 1 connection x 5": _volume(2.5, 0.5),
    "raw produce, 64 KiB batches, 1 connection x 5": _volume(2.5, 0.5),
    "raw produce, 1 MiB batches, 1 connection x 5": _volume(2.5, 0.5),
    "raw fetch of 64 KiB from the page cache": _volume(1.2, 1.0),
    "raw fetch of 1 MiB from the page cache": _volume(1.0, 1.0),
    "raw fetch of 16 MiB from the page cache": _volume(1.0, 1.0),
    "Java consumer, fetches of 1 MiB": _volume(1.0, 1.0),
    "Java consumer, fetches of 16 MiB": _volume(1.0, 1.0),
    "librdkafka consumer, fetches of 1 MiB": _volume(1.0, 1.0),
    "librdkafka consumer, fetches of 16 MiB": _volume(1.0, 1.0),
    "100 active connections, one in flight each, and 1,000 idle": {
        **_requests(1.1, 0.7),
        Metric.LATENCY_P99: Bar(0.8, False),
    },
    "Java producer, 1,000 partitions, first run on the topic": _volume(1.3, 0.65),
    "Java producer, 1,000 partitions, second run": _volume(1.3, 0.65),
    "Java consumer, 1,000 partitions": _volume(1.1, 0.6),
    "rebalance of 100 members": _rebalance(1.0, 1.0),
    "rebalance of 500 members": _rebalance(1.0, 1.0),
    "rebalance of 1,000 members": _rebalance(1.0, 1.0),
    "offset commits of 100 groups, one in flight each": _requests(1.0, 1.0),
    "memory, growth by 1,000 groups": _memory(12),
    "memory, idle after an empty start": _memory(48),
    "memory, after all runs": _memory(64),
    "memory, idle with 1,000 partitions created": _memory(96),
    "memory, idle after a start with 1,000 partitions": _memory(96),
    "start, empty": _start(300),
    "start, clean, with 1,000 partitions": _start(1500),
}

SECURITY: Final[dict[str, dict[Metric, Bar]]] = {
    "Java producer over SASL_SSL, 1 KiB records, 64 KiB batches": _volume(1.0, 1.0),
    "librdkafka producer over SASL_SSL, 1 KiB records, 64 KiB batches": _volume(1.0, 1.0),
    "Java consumer over SASL_SSL, fetches of 1 MiB": _volume(1.0, 1.0),
    "librdkafka consumer over SASL_SSL, fetches of 1 MiB": _volume(1.0, 1.0),
    "TLS handshakes, 50 at a time": _handshakes(1.0, 1.0),
    "TLS handshakes with SCRAM-SHA-512, 50 at a time": _handshakes(1.0, 1.0),
    "1,000 connections with SCRAM-SHA-512 that stay": _handshakes(1.0, 1.0),
    "Java producer, plain, 1 KiB records": _volume(0.95, 1.05),
    "Java consumer, plain, fetches of 1 MiB": _volume(0.95, 1.05),
    "one record a request, plain, 10 connections x 5 in flight": _requests(0.95, 1.05),
}
"""What `python -m benchmarks.security` asks: beside Apache Kafka, and of the same broker what a
thousand rules may cost."""

BARS: Final = ONE_BROKER | SECURITY
