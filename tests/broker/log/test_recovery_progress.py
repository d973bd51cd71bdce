"""How far loading the logs has come: numbers, lines of the log, and when it is stuck."""

import logging
from pathlib import Path

import pytest

from barnabas_broker.log.recovery_progress import (
    SCAN_STEP_BYTES,
    RecoveryProgress,
    RecoveryWork,
    SegmentScan,
)

DATA = Path("/data")


class Clock:
    """Seconds, set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_one_large_log_says_how_far_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """A line every few seconds while a segment is scanned, with an estimate by bytes."""
    caplog.set_level(logging.INFO)
    clock = Clock()
    progress = RecoveryProgress(clock)
    work = RecoveryWork(segments=2, size_bytes=8 * SCAN_STEP_BYTES)
    directory = progress.begin(DATA, clean=False, logs=69, work=work)
    caplog.clear()
    with SegmentScan(directory) as scan:
        for mib in range(1, 5):
            clock.now_s += 2.0
            scan.advance(mib * SCAN_STEP_BYTES)
    directory.step()
    assert caplog.messages == [
        "Recovering 0/69 logs in /data; 0/2 unflushed segments, 3/8 MiB scanned; about 10 s left"
    ]
    reported = progress.as_json()
    assert reported["currentDirectory"] == "/data"
    assert (reported["logs"], reported["remainingLogsToRecover"]) == (69, 68)
    assert (reported["segments"], reported["remainingSegmentsToRecover"]) == (2, 1)
    assert reported["remainingBytesToRecover"] == 4 * SCAN_STEP_BYTES
    assert reported["estimatedRemainingSeconds"] == 8.0


def test_more_than_was_foreseen(caplog: pytest.LogCaptureFixture) -> None:
    """A missing index has flushed segments scanned: nothing remaining is ever negative."""
    caplog.set_level(logging.INFO)
    directory = RecoveryProgress(Clock()).begin(DATA, clean=True, logs=1, work=RecoveryWork())
    directory.scanned(100, segments=1)
    reported = directory.as_json()
    assert (reported["bytes"], reported["remainingBytesToRecover"]) == (100, 0)
    assert (reported["segments"], reported["remainingSegmentsToRecover"]) == (1, 0)
    assert caplog.messages == [
        "Skipping recovery of 1 logs from /data since clean shutdown file was found"
    ]


def test_clean_logs_are_estimated_by_number() -> None:
    """There is nothing to scan: the time per log counts."""
    clock = Clock()
    progress = RecoveryProgress(clock)
    directory = progress.begin(DATA, clean=True, logs=10, work=RecoveryWork())
    assert progress.as_json()["estimatedRemainingSeconds"] is None
    clock.now_s = 6.0
    assert directory.step() is None or directory.logs_done == 1
    assert directory.left_s == 54.0
    assert progress.describe() == "Loading 1/10 logs in /data; about 54 s left"


def test_whatever_is_done_is_progress() -> None:
    """A MiB as much as a log; waiting is none."""
    clock = Clock()
    progress = RecoveryProgress(clock)
    directory = progress.begin(DATA, clean=False, logs=2, work=RecoveryWork())
    clock.now_s = 700.0
    assert progress.idle_s == 700.0
    directory.scanned(SCAN_STEP_BYTES)
    assert progress.idle_s == 0.0
    clock.now_s = 800.0
    directory.step()
    assert progress.idle_s == 0.0
