"""Finding records by time, as ListOffsets asks."""

from pathlib import Path

import pytest

from barnabas_broker.log.config import LogConfig
from barnabas_kafka.records.compression import Codec
from tests.broker.log.samples import NOW, append, batch_of, open_log

CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=200)


def test_every_timestamp_finds_its_record(tmp_path: Path) -> None:
    """Across segments, through the time index and inside batches."""
    log = open_log(tmp_path, CONFIG)
    for number in range(40):
        append(log, batch_of(5, timestamp=NOW + number * 10), epoch=number // 10)
    assert len(log.segments) > 3
    for number in range(40):
        for inner in range(5):
            found = log.offset_for_timestamp(NOW + number * 10 + inner)
            assert found == (number * 5 + inner, NOW + number * 10 + inner, number // 10)
        between = log.offset_for_timestamp(NOW + number * 10 + 7)
        assert between is None if number == 39 else between is not None
        if between is not None:
            assert between.offset == number * 5 + 5


def test_the_first_record_old_enough_is_found_by_offset(tmp_path: Path) -> None:
    """Records out of order: the lowest offset with at least that timestamp, not the nearest."""
    log = open_log(tmp_path)
    for timestamp in (NOW, NOW + 50, NOW + 10, NOW + 60):
        append(log, batch_of(timestamp=timestamp))
    assert log.offset_for_timestamp(NOW + 5) == (1, NOW + 50, 0)
    assert log.offset_for_timestamp(NOW + 55) == (3, NOW + 60, 0)


@pytest.mark.parametrize("codec", list(Codec))
def test_compressed_batches_are_looked_into(tmp_path: Path, codec: Codec) -> None:
    """Only the one batch that may hold the answer is unpacked."""
    log = open_log(tmp_path)
    append(log, batch_of(10, codec=codec))
    assert log.offset_for_timestamp(NOW + 6) == (6, NOW + 6, 0)


def test_nothing_below_the_log_start_is_found(tmp_path: Path) -> None:
    """Deleted records are gone, even while their segment is still there."""
    log = open_log(tmp_path)
    append(log, batch_of(10))
    log.delete_records_before(4)
    assert log.offset_for_timestamp(NOW) == (4, NOW + 4, 0)


def test_a_time_after_all_records_finds_nothing(tmp_path: Path) -> None:
    """Nor does an empty log find anything."""
    log = open_log(tmp_path)
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None
    append(log, batch_of())
    assert log.offset_for_timestamp(NOW + 1) is None


def test_the_youngest_record(tmp_path: Path) -> None:
    """The first that has the greatest timestamp, wherever it lies (KIP-734)."""
    log = open_log(tmp_path, CONFIG)
    for number in range(30):
        append(log, batch_of(3, timestamp=NOW + 999 if number == 7 else NOW + number))
    assert log.offset_of_max_timestamp() == (7 * 3 + 2, NOW + 1001, 0)
    log.close()
    again = open_log(tmp_path, CONFIG)
    assert again.offset_of_max_timestamp() == (7 * 3 + 2, NOW + 1001, 0)
