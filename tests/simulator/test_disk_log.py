"""The real log on a modelled disk answers as the log in memory does."""

from collections.abc import Iterator
from random import Random

import pytest

from simulator.disk_log import DiskLog


@pytest.fixture
def log() -> Iterator[DiskLog]:
    """An empty log, removed in the end."""
    made = DiskLog()
    yield made
    made.close()


def test_a_kill_loses_nothing(log: DiskLog) -> None:
    """What was written is there; the high watermark is the one of the last checkpoint."""
    for number in range(3):
        log.append(number // 2, f"1.{number}")
    log.high_watermark = 2
    log.checkpoint()
    log.high_watermark = 3
    log.restart(Random(1), power_lost=False)
    assert [record.value for record in log.records] == ["1.0", "1.1", "1.2"]
    assert (log.high_watermark, log.latest_epoch) == (2, 1)
    assert log.find("1.1") == 1
    assert log.refusal("1.3") == ""
    assert log.refusal("1.5") == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_a_power_cut_loses_what_was_not_synced(log: DiskLog) -> None:
    """All that was synced is there, and nothing that was never written."""
    log.append(0, "1.0")
    log.flush()
    log.append(0, "1.1")
    log.restart(Random(3), power_lost=True)
    assert [record.value for record in log.records] in (["1.0"], ["1.0", "1.1"])
    assert log.durable_offset == log.log_end_offset


def test_a_follower_takes_what_it_may(log: DiskLog) -> None:
    """Batches as stored, up to the first of a newer epoch than it follows."""
    other = DiskLog()
    try:
        log.append(4, "1.0")
        log.append(5, "1.1")
        other.append_fetched(log.read(0, 9), max_epoch=4)
        assert other.records == log.records[:1]
        other.append_fetched(log.read(1, 9), max_epoch=5)
        assert other.records == log.records
        other.truncate_to(1)
        assert other.records == log.records[:1]
        assert other.end_offset_for_epoch(4) == (4, 1)
    finally:
        other.close()
