"""What is measured: metrics, samples of one run, and cases that produce samples.

A *case* is one thing a user can ask for by name. Running it once against one target gives one or
more *samples*; a sample is one row of the result with a value per metric. Nothing here measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.targets import Target

MB = 1_000_000
MIB = 1 << 20


class Metric(StrEnum):
    """A measured quantity, named as it is printed."""

    MB_RATE = "MB/s"
    REQUEST_RATE = "requests/s"
    LATENCY_P50 = "p50 µs"
    LATENCY_P99 = "p99 µs"
    CPU_PER_MB = "broker CPU ms/MB"
    CPU_PER_REQUEST = "broker CPU µs/request"
    HANDSHAKE_RATE = "handshakes/s"
    CPU_PER_HANDSHAKE = "broker CPU µs/handshake"
    MEMORY_PER_CONNECTION = "KiB/connection"
    REBALANCE = "ms/rebalance"
    CPU_PER_REBALANCE = "broker CPU ms/rebalance"
    START = "start ms"
    RSS = "VmRSS MiB"

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value is the better one."""
        return self in (Metric.MB_RATE, Metric.REQUEST_RATE, Metric.HANDSHAKE_RATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One row of one run on one target.

    `values` is what is compared. `detail` is kept in the raw results only: wall and CPU seconds,
    amounts, memory, and how many cores other processes used meanwhile.
    """

    row: str
    values: Mapping[Metric, float]
    detail: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much work a run does: the full amounts, or the small ones that only show it works."""

    quick: bool
    duration_s: float | None = None

    def of(self, full: int, quick: int) -> int:
        """`full`, or `quick` in a quick run."""
        return quick if self.quick else full

    @property
    def seconds(self) -> float:
        """How long a case that is bounded by time goes on."""
        if self.duration_s is not None:
            return self.duration_s
        return 0.3 if self.quick else 2.0


@dataclass(frozen=True, slots=True)
class Case:
    """Something that can be measured by name.

    `fresh` cases start and stop brokers of their own through the target; the others use the
    target's long-running broker. `warm_ups` says how many runs come first and are not counted:
    none where they would change nothing, because the case comes late and warms by itself what it
    needs; several where a compiler at run time goes on to gain for longer than one run.
    """

    name: str
    title: str
    run: Callable[[Target, Scale], list[Sample]]
    fresh: bool = False
    warm_ups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The samples of one case on one target in one round; rounds below 1 warm up, uncounted.

    `seconds` is what the whole of it took, clients' starts and topics' deletion included.
    """

    case: str
    target: str
    round: int
    samples: tuple[Sample, ...]
    seconds: float = 0.0
    error: str | None = None
