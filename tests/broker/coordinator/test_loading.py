"""Groups read back from a log that somebody else may have written."""

from pathlib import Path

import pytest

from barnabas_broker.coordinator.group.records import (
    KIND,
    CommittedOffset,
    OffsetRecord,
    PendingOffset,
    Record,
    TransactionEnd,
    encode,
)
from barnabas_broker.coordinator.loading import RECORDS_AT_ONCE, Kind, read_back
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.control import ControlType, control_key

GROUPS: Kind[Record] = KIND
TP = TopicPartition("__consumer_offsets", 0)


def offset(number: int) -> OffsetRecord:
    """A committed offset."""
    committed = CommittedOffset(offset=number, commit_timestamp=1)
    return OffsetRecord("g", TopicPartition("t", number), committed)


class Written:
    """A log under construction."""

    def __init__(self, directory: Path) -> None:
        self.log = PartitionLog.open(directory, TP, LogConfig(), now_ms=0)

    def add(self, *contents: tuple[bytes, bytes | None], **how: object) -> None:
        """Append a batch of keys and values as a follower does."""
        records = [(1, key, value, ()) for key, value in contents]
        base = self.log.log_end_offset
        batch = build_batch(records, base_offset=base, leader_epoch=0, **how)  # type: ignore[arg-type]
        self.log.append_as_follower(bytearray(batch), now_ms=1)
        self.log.advance_high_watermark(self.log.log_end_offset)

    def read(self) -> list[Record]:
        """Everything that is replayed."""
        replayed: list[Record] = []
        for _ in read_back(self.log, GROUPS, replayed.append, buffer_bytes=1):
            pass
        return replayed


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """An empty log."""
    directory = tmp_path / "__consumer_offsets-0"
    directory.mkdir()
    return Written(directory)


def test_records_are_replayed_in_order(written: Written) -> None:
    """Batch after batch, whatever the size of the buffer."""
    records = [offset(number) for number in range(5)]
    written.add(encode(records[0]), encode(records[1]))
    for record in records[2:]:
        written.add(encode(record))
    assert written.read() == records


def test_unreadable_records_are_skipped_and_logged(
    written: Written, caplog: pytest.LogCaptureFixture
) -> None:
    """One bad record does not take the other groups with it."""
    written.add((b"\0\1\0\7", b"cut"), (b"\0\x09\0\1g", b"of another time"), encode(offset(1)))
    assert written.read() == [offset(1)]
    assert "Skipped: partition=__consumer_offsets-0 the record at offset 0" in caplog.text
    assert "Unknown record type: partition=__consumer_offsets-0 offset=1" in caplog.text


@pytest.mark.parametrize("end", [ControlType.COMMIT, ControlType.ABORT])
def test_transactional_offsets_are_replayed_with_their_marker(
    written: Written, end: ControlType
) -> None:
    """What was written in one is pending; what the marker says comes where it lies in the log."""
    producer = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    written.add(encode(offset(1)), base_sequence=0, **producer)
    written.add(encode(offset(2)))
    written.add((control_key(end), b"\0\0\0\0\0\0"), control=True, **producer)
    assert written.read() == [
        PendingOffset(7, offset(1)),
        offset(2),
        TransactionEnd(7, end is ControlType.COMMIT),
    ]


def test_records_appended_while_loading_are_read(written: Written) -> None:
    """Up to the end that the log has when the last step returns."""
    for number in range(RECORDS_AT_ONCE):
        written.add(encode(offset(number)))
    replayed: list[Record] = []
    steps = read_back(written.log, GROUPS, replayed.append, buffer_bytes=1)
    next(steps)
    written.add(encode(offset(7)))
    assert list(steps) == []
    assert replayed[-1] == offset(7)
