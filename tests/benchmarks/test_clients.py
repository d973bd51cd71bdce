"""What client processes report is read rightly, and their failures say why."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.clients import producer_performance_report, run_worker
from benchmarks.model import BenchmarkError
from tests.benchmarks.test_harness import OwnProcess

SUMMARY = (
    "1000 records sent, 900.0 records/sec (0.2 MB/sec), 1.0 ms avg latency, 2.0 ms max latency.\n"
    "5000 records sent, 1234.5 records/sec (1.21 MB/sec), 12.30 ms avg latency, "
    "45.00 ms max latency, 11 ms 50th, 22 ms 95th, 33 ms 99th, 44 ms 99.9th.\n"
)


def test_last_line_of_producer_performance_counts() -> None:
    """The lines of progress before it are not the summary."""
    summary = producer_performance_report(SUMMARY)
    assert summary["records_per_s"] == 1234.5
    assert (summary["p50"], summary["p99"]) == (11, 33)


def test_output_without_a_summary_is_an_error() -> None:
    """A tool that ends without having measured anything is not taken for a slow one."""
    with pytest.raises(BenchmarkError, match="no summary"):
        producer_performance_report("WARN cannot connect\n")


def test_worker_that_cannot_connect_says_so(tmp_path: Path) -> None:
    """The error carries the worker's own last words instead of a time-out."""
    spec = {"mode": "fetch", "topic": "none", "max_bytes": 1, "batch_bytes": 1}
    with pytest.raises(BenchmarkError, match="refused"):
        run_worker("raw", {**spec, "batch_records": 1, "end_offset": 1}, OwnProcess(tmp_path))
