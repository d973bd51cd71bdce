"""Client processes: the same ones for every broker, started here, bounded in time, always reaped.

Worker processes (raw sockets, librdkafka) prepare themselves, say ``ready``, wait for ``go`` and
end with one line of JSON: their start-up is outside the measured stretch. Java clients run to
their end in one piece and report times by their own clock.
"""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from benchmarks.errors import BenchmarkError
from benchmarks.metering import Meter, children_seconds
from benchmarks.targets import Endpoint
from tests.oracle.apache import CACHE, classpath, java_command

CLIENT_DEADLINE: Final = 120.0
REPOSITORY: Final = Path(__file__).resolve().parents[1]
JAVA_SOURCES: Final = Path(__file__).with_name("java")
JAVA_CLIENT_FLAGS: Final = ("-Xmx512m", "-XX:+UseG1GC")

Report = dict[str, Any]


def run_worker(module: str, spec: Mapping[str, object], broker: Endpoint) -> tuple[Report, Meter]:
    """Run ``benchmarks.workers.<module>`` on `spec`; returns its report and the broker's meter.

    Raises BenchmarkError with what the worker wrote to stderr when it fails or takes too long.
    """
    command = [sys.executable, "-m", f"benchmarks.workers.{module}"]
    command.append(json.dumps({"bootstrap": broker.bootstrap, **spec}))
    meter = Meter([broker.pid])
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    try:
        _expect_ready(process)
        with meter:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            line = _line(process)
        _, complaints = process.communicate(timeout=20)
    except subprocess.TimeoutExpired as late:
        raise BenchmarkError(f"worker {module} did not end") from late
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    if process.returncode != 0 or not line:
        raise BenchmarkError(f"worker {module} failed: {_last_line(complaints)}")
    report: Report = json.loads(line)
    meter.settle(report["client_cpu_seconds"])
    return report, meter


def run_java(
    brokers: Sequence[int], main_class: str, *args: str, version: str
) -> tuple[str, Meter]:
    """Run a Java client to its end; returns its standard output and the meter of the brokers.

    `brokers` are their process ids.
    """
    command = java_command(
        main_class,
        *args,
        version=version,
        jvm_flags=JAVA_CLIENT_FLAGS,
        extra_classpath=[compiled(version)],
    )
    meter = Meter(brokers)
    before = children_seconds()
    try:
        with meter:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=CLIENT_DEADLINE, check=False
            )
    except subprocess.TimeoutExpired as late:
        raise BenchmarkError(f"{main_class} not done in {CLIENT_DEADLINE:g} s") from late
    meter.settle(children_seconds() - before)
    if done.returncode != 0 or "ERROR" in done.stderr:
        raise BenchmarkError(f"{main_class} failed: {(done.stderr or done.stdout)[-600:]}")
    return done.stdout, meter


def compiled(version: str) -> Path:
    """The class files of benchmarks/java, compiled against Kafka `version` and remembered."""
    sources = sorted(JAVA_SOURCES.glob("*.java"))
    digest = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    directory = CACHE.parent / "benchmarks" / f"classes-{version}-{digest}"
    if not (directory / "complete").exists():
        directory.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["javac", "-cp", classpath(version), "-d", str(directory), *map(str, sources)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != 0:
            raise BenchmarkError(f"javac failed: {done.stderr[-1000:]}")
        (directory / "complete").touch()
    return directory


def producer_performance_report(output: str) -> dict[str, float]:
    """The last line ProducerPerformance prints, as numbers: records/s, MB/s (MiB) and latencies."""
    found = re.findall(
        r"(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\), ([\d.]+) ms avg latency, "
        r"([\d.]+) ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th",
        output,
    )
    if not found:
        raise BenchmarkError(f"ProducerPerformance gave no summary: {output[-400:]}")
    names = ("records", "records_per_s", "mib_per_s", "avg_ms", "max_ms", "p50", "p95", "p99")
    return dict(zip(names, map(float, found[-1]), strict=True))


def _expect_ready(process: subprocess.Popen[str]) -> None:
    line = _line(process)
    if line.strip() != "ready":
        process.kill()
        _, complaints = process.communicate()
        raise BenchmarkError(f"client failed before it began: {_last_line(complaints)}")


def _line(process: subprocess.Popen[str]) -> str:
    """One line of the worker's output; empty when it ended without one."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], CLIENT_DEADLINE)
    if not readable:
        raise BenchmarkError(f"client gave no answer in {CLIENT_DEADLINE:g} s")
    return process.stdout.readline()


def _last_line(complaints: str) -> str:
    """What a traceback ends with."""
    return (complaints.strip().splitlines() or ["no reason given"])[-1][:600]
