"""Control records: transaction markers read and written as Kafka has them."""

import pytest

from barnabas_kafka.records import control
from barnabas_kafka.records.batch import CorruptBatch, parse_header, records, verify_crc
from barnabas_kafka.records.control import ControlType, EndTransactionMarker


@pytest.mark.parametrize("kind", ControlType)
def test_marker_round_trip(kind: ControlType) -> None:
    """A marker's batch is transactional, control, of its producer, without sequences."""
    marker = EndTransactionMarker(kind, 7)
    data = control.build_end_transaction(
        marker, producer_id=4000, producer_epoch=3, timestamp_ms=1_700_000_000_000
    )
    header = parse_header(data)
    verify_crc(data, 0, header)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 3, -1)
    (record,) = records(data)
    assert control.parse_end_transaction(record.key, record.value) == marker


def test_known_bytes() -> None:
    """Key and value are version and type, version and coordinator epoch, all big-endian."""
    data = control.build_end_transaction(
        EndTransactionMarker(ControlType.COMMIT, 258),
        producer_id=1,
        producer_epoch=0,
        timestamp_ms=0,
    )
    (record,) = records(data)
    assert record.key == b"\x00\x00\x00\x01"
    assert record.value == b"\x00\x00\x00\x00\x01\x02"


def test_newer_versions_are_read() -> None:
    """Fields a later version puts behind the known ones do not disturb."""
    assert control.parse_end_transaction(b"\0\x05\0\0tail", b"\0\x02\0\0\0\x09tail") == (
        ControlType.ABORT,
        9,
    )


def test_unknown_types_are_skipped() -> None:
    """A control record of another kind is not an error for whoever looks for markers."""
    assert control.parse_control_key(b"\0\0\0\x02") is None
    assert control.parse_end_transaction(b"\0\0\0\x02", b"") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\0"),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\xff\xff\0\0", b"\0\0\0\0\0\0"),
        (b"\0\0\0\0", None),
        (b"\0\0\0\0", b"\0\0\0\0\0"),
        (b"\0\0\0\0", b"\xff\xff\0\0\0\0"),
    ],
)
def test_malformed_markers_are_refused(key: bytes | None, value: bytes | None) -> None:
    """Short, missing or negatively versioned keys and values are corrupt."""
    with pytest.raises(CorruptBatch):
        control.parse_end_transaction(key, value)
