"""What ``barnabas dump-log`` reads: right files give rows, wrong ones say what is wrong."""

import struct
from pathlib import Path

import pytest

from barnabas_broker.log import dump
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.dump import BatchRow, OffsetRow, Problem, RecordRow, TimeRow
from barnabas_broker.log.producer_state import EndMarker, Origin
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.legacy import Message, encode_message
from tests.broker.log.samples import (
    NOW,
    append,
    batch_of,
    marker_of,
    open_log,
    validated,
)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A closed segment with all kinds of batches; the path of its log file."""
    log = open_log(tmp_path, LogConfig(index_interval_bytes=150))
    for number in range(10):
        append(log, batch_of(3, timestamp=NOW + number * 5), epoch=number // 5)
    append(log, batch_of(2, codec=Codec.ZSTD, timestamp=NOW + 500))
    append(log, batch_of(2, producer=(9, 1, 0), transactional=True, timestamp=NOW + 600))
    end = validated(marker_of(9, 1, commit=False, coordinator_epoch=4))
    log.append_as_leader(end, leader_epoch=1, now_ms=NOW, origin=Origin.COORDINATOR)
    log.close()
    return tmp_path / "orders-3" / f"{0:020d}.log"


def problems(rows: object) -> list[object]:
    assert isinstance(rows, list)
    return [row for row in rows if isinstance(row, Problem)]


def test_batches_of_a_log(segment: Path) -> None:
    """One row per batch, with what its header says."""
    rows = list(dump.dump_log(segment))
    assert len(rows) == 13
    assert all(isinstance(row, BatchRow) and row.valid for row in rows)
    zstd, data, marker = rows[-3:]
    assert isinstance(zstd, BatchRow)
    assert (zstd.codec, zstd.timestamp_type, zstd.delete_horizon_ms) == ("zstd", "CreateTime", None)
    assert isinstance(data, BatchRow)
    assert (data.batch.base_sequence, data.last_sequence) == (0, 1)
    assert isinstance(marker, BatchRow)
    assert marker.batch.is_control


def test_deep_iteration_shows_records(segment: Path) -> None:
    """Also from compressed batches and control batches."""
    rows = list(dump.dump_log(segment, deep=True))
    records = [row for row in rows if isinstance(row, RecordRow)]
    assert [record.offset for record in records] == list(range(35))
    assert records[0].key == b"key"
    assert records[33].sequence == 1
    assert records[34].marker == EndMarker(commit=False, coordinator_epoch=4)
    assert problems(rows) == []


def test_only_so_many_bytes_are_read(segment: Path) -> None:
    """max_bytes shows the beginning of a large file; the rest is no problem then."""
    rows = list(dump.dump_log(segment, max_bytes=300))
    assert 0 < len(rows) < 4
    assert problems(rows) == []


def test_a_flipped_bit_shows_as_invalid(segment: Path) -> None:
    """The row is there, and says its CRC is wrong."""
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    first, second, *_ = dump.dump_log(segment)
    assert isinstance(first, BatchRow)
    assert isinstance(second, BatchRow)
    assert (first.valid, second.valid) == (False, True)


def test_bytes_that_are_no_batch_are_counted(segment: Path) -> None:
    """A torn end, and zeros behind the last batch."""
    data = segment.read_bytes()
    segment.write_bytes(data + data[:70])
    (torn,) = problems(list(dump.dump_log(segment)))
    assert isinstance(torn, Problem)
    assert torn.position == len(data)
    assert torn.message.startswith("70 bytes at the end")
    segment.write_bytes(data + bytes(500))
    assert len(problems(list(dump.dump_log(segment)))) == 2


def test_offsets_that_do_not_follow_are_named(tmp_path: Path) -> None:
    """Right on a compacted topic, a question on any other."""
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batch_of(2) + batch_of(1, offset=7))
    (gap,) = problems(list(dump.dump_log(path, deep=True)))
    assert gap == Problem("offset 1 is followed by 7")


def test_messages_of_old_formats(tmp_path: Path) -> None:
    """Magic 0 has no timestamps, magic 1 has."""
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(
        encode_message(Message(0, -1, None, b"a", 0, 0))
        + encode_message(Message(1, NOW, b"k", b"b", 1, 0))
    )
    rows = list(dump.dump_log(path, deep=True))
    kinds = [row.timestamp_type for row in rows if isinstance(row, BatchRow)]
    assert kinds == ["NoTimestampType", "CreateTime"]
    assert [row.value for row in rows if isinstance(row, RecordRow)] == [b"a", b"b"]


def test_right_indexes_have_no_problems(segment: Path) -> None:
    """Every entry names the batch it points at, and its greatest timestamp."""
    offsets = list(dump.dump_offset_index(segment.with_suffix(".index")))
    times = list(dump.dump_time_index(segment.with_suffix(".timeindex")))
    assert len(offsets) > 3
    assert len(times) > 3
    assert [row.problem for row in offsets if isinstance(row, OffsetRow)] == [None] * len(offsets)
    assert [row.problem for row in times if isinstance(row, TimeRow)] == [None] * len(times)
    assert dump.check_index(segment.with_suffix(".index")) is None
    assert dump.check_index(segment.with_suffix(".timeindex")) is None


def test_wrong_offset_entries_are_named(segment: Path) -> None:
    """Another offset than the batch's, and a position where no batch is."""
    path = segment.with_suffix(".index")
    size = next(iter(dump.dump_log(segment)))
    assert isinstance(size, BatchRow)
    path.write_bytes(struct.pack(">4i", 4, size.batch.size, 30, 10**6))
    wrong, lost = dump.dump_offset_index(path)
    assert isinstance(wrong, OffsetRow)
    assert wrong.problem == "index offset 4, log offset 5"
    assert isinstance(lost, OffsetRow)
    assert lost.problem == "offset 30: no batch at position 1000000"


def test_wrong_time_entries_are_named(segment: Path) -> None:
    """Another timestamp than the batch's, an offset inside a batch, and a step back."""
    segment.with_suffix(".index").write_bytes(b"")
    path = segment.with_suffix(".timeindex")
    path.write_bytes(struct.pack(">qiqiqi", NOW + 1, 2, NOW + 7, 4, NOW + 2, 2))
    with pytest.raises(ValueError, match="not an index"):
        dump.check_index(segment)
    rows = [row.problem for row in dump.dump_time_index(path) if isinstance(row, TimeRow)]
    assert rows == [
        f"index timestamp {NOW + 1}, log timestamp {NOW + 2}",
        "offset 4 ends no batch, the next one ends at 5",
        f"timestamp {NOW + 2} is not above {NOW + 7} before it",
    ]


def test_corrupt_indexes_fail_the_sanity_check(segment: Path) -> None:
    """What start-up would build again."""
    for suffix in (".index", ".timeindex"):
        path = segment.with_suffix(suffix)
        path.write_bytes(path.read_bytes() + b"x")
        assert "not a multiple" in str(dump.check_index(path))
    assert len(problems(list(dump.dump_offset_index(segment.with_suffix(".index"))))) == 1
    assert len(problems(list(dump.dump_time_index(segment.with_suffix(".timeindex"))))) == 1


def test_the_zeros_of_a_killed_broker_are_passed_over(tmp_path: Path) -> None:
    """A preallocated rest holds no entries."""
    log = open_log(tmp_path, LogConfig(index_interval_bytes=150))
    for number in range(10):
        append(log, batch_of(3, timestamp=NOW + number * 5))
    log.flush(now_ms=NOW)
    path = tmp_path / "orders-3" / f"{0:020d}.index"
    assert path.stat().st_size == 10 << 20
    assert 0 < len(list(dump.dump_offset_index(path))) < 10


def test_side_files(segment: Path) -> None:
    """Producers, aborted transactions and epochs."""
    (producer,) = dump.dump_snapshot(segment.with_name(f"{35:020d}.snapshot"))
    assert not isinstance(producer, Problem)
    assert (producer.producer_id, producer.epoch, producer.coordinator_epoch) == (9, 1, 4)
    aborted = list(dump.dump_transaction_index(segment.with_suffix(".txnindex")))
    assert aborted == [AbortedTransaction(9, 32, 34, 35)]
    epochs = list(dump.dump_epochs(segment.with_name("leader-epoch-checkpoint")))
    assert epochs == [(0, 0), (1, 15)]


def test_damaged_side_files_are_problems(tmp_path: Path) -> None:
    """Never a traceback."""
    path = tmp_path / "5.snapshot"
    path.write_bytes(b"damaged bytes")
    for read in (dump.dump_snapshot, dump.dump_transaction_index, dump.dump_epochs):
        assert len(problems(list(read(path)))) == 1
