"""Broker CPU time and memory over a stretch of work, and what the rest of the machine did.

CPU is the process's own clock (user and system, all threads), which Linux gives for any process id
in nanoseconds; memory is VmRSS and VmHWM of /proc/PID/status. Where a broker is several processes,
all of them count.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.model import MB, Metric, Sample

_TICK: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of process `pid` since it began; raises OSError when it is gone."""
    # The clock id of another process's CPU clock, as clock_getcpuclockid(3) computes it.
    return time.clock_gettime((~pid << 3) | 2)


def memory_mib(pid: int) -> tuple[float, float]:
    """VmRSS and its peak VmHWM, in MiB."""
    fields = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            fields[name] = int(value.split()[0]) / 1024
    return fields["VmRSS"], fields["VmHWM"]


def machine_busy_seconds() -> float:
    """CPU seconds the whole machine has spent neither idle nor waiting for a disk."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICK


class Meter:
    """A context manager round the measured part of a run.

    Afterwards `wall` and `cpu` are seconds, `rss` and `peak` MiB at its end, and `other_cores` the
    average number of cores used by processes that are neither the broker nor its client.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self.pids = tuple(pids)
        self.wall = self.cpu = self.rss = self.peak = self.other_cores = 0.0

    def __enter__(self) -> Self:
        self._busy = machine_busy_seconds()
        self._cpu = sum(map(cpu_seconds, self.pids))
        self._wall = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wall = time.perf_counter() - self._wall
        if error is not None:
            return
        self.cpu = sum(map(cpu_seconds, self.pids)) - self._cpu
        self._busy = machine_busy_seconds() - self._busy
        memory = [memory_mib(pid) for pid in self.pids]
        self.rss = sum(rss for rss, _ in memory)
        self.peak = sum(peak for _, peak in memory)

    def settle(self, client_seconds: float) -> None:
        """Work out `other_cores`, given the CPU seconds the clients used in the same stretch."""
        self.other_cores = max(0.0, (self._busy - self.cpu - client_seconds) / self.wall)

    def detail(self, **more: float | str) -> dict[str, float | str]:
        """What goes into a sample's `detail`."""
        return {
            "metered_seconds": self.wall,
            "broker_cpu_seconds": self.cpu,
            "rss_mib": self.rss,
            "peak_mib": self.peak,
            "other_cores": self.other_cores,
            **more,
        }


def megabytes_sample(
    row: str,
    meter: Meter,
    *,
    moved_bytes: float,
    seconds: float,
    values: Mapping[Metric, float] | None = None,
) -> Sample:
    """A row about volume: MB/s by the client's clock, broker CPU per MB."""
    megabytes = moved_bytes / MB
    measured = {
        Metric.MB_RATE: megabytes / seconds,
        Metric.CPU_PER_MB: meter.cpu * 1e3 / megabytes,
        **(values or {}),
    }
    return Sample(row=row, values=measured, detail=meter.detail(seconds=seconds, mb=megabytes))


def requests_sample(
    row: str,
    meter: Meter,
    *,
    requests: float,
    seconds: float,
    values: Mapping[Metric, float] | None = None,
) -> Sample:
    """A row about requests: their rate by the client's clock, broker CPU per request."""
    measured = {
        Metric.REQUEST_RATE: requests / seconds,
        Metric.CPU_PER_REQUEST: meter.cpu * 1e6 / requests,
        **(values or {}),
    }
    return Sample(row=row, values=measured, detail=meter.detail(seconds=seconds, requests=requests))


def handshakes_sample(
    row: str,
    meter: Meter,
    *,
    handshakes: float,
    seconds: float,
    values: Mapping[Metric, float] | None = None,
) -> Sample:
    """A row about new connections: their rate by the client's clock, broker CPU for each."""
    measured = {
        Metric.HANDSHAKE_RATE: handshakes / seconds,
        Metric.CPU_PER_HANDSHAKE: meter.cpu * 1e6 / handshakes,
        **(values or {}),
    }
    detail = meter.detail(seconds=seconds, handshakes=handshakes)
    return Sample(row=row, values=measured, detail=detail)


def children_seconds() -> float:
    """CPU seconds of all child processes that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
