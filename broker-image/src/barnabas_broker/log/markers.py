"""What a batch in a log says to the producer state: its sequences, or the marker it holds."""

from __future__ import annotations

from barnabas_broker.log.batches import StoredBatch
from barnabas_broker.log.producer_state import EndMarker, ProducerBatch
from barnabas_kafka.records.batch import BatchHeader, records
from barnabas_kafka.records.control import ControlType, parse_end_transaction

_LAST_SEQUENCE = 0x7FFFFFFF


def end_marker(data: bytes | bytearray | memoryview) -> EndMarker | None:
    """The marker in a control batch; None when it holds none. Raises CorruptBatch.

    A control batch that compaction has emptied, or one of another type, settles nothing.
    """
    for record in records(data):
        marker = parse_end_transaction(record.key, record.value)
        if marker is None:
            return None
        return EndMarker(marker.control_type is ControlType.COMMIT, marker.coordinator_epoch)
    return None


def stored_producer_batch(
    batch: StoredBatch, data: bytes | bytearray | memoryview | None
) -> ProducerBatch:
    """The producer's side of a batch read from a segment; ``data`` only for control batches."""
    first = last = batch.base_sequence
    if first >= 0:
        last = (first + batch.last_offset - batch.base_offset) & _LAST_SEQUENCE
    marker = end_marker(data) if batch.is_control and data is not None else None
    return ProducerBatch(
        batch.producer_id, batch.producer_epoch, first, last,
        batch.base_offset, batch.last_offset, batch.max_timestamp,
        batch.is_transactional, batch.is_control, marker,
    )  # fmt: skip


def new_producer_batch(
    header: BatchHeader, base_offset: int, data: bytes | bytearray | memoryview
) -> ProducerBatch:
    """The producer's side of a batch about to be appended at ``base_offset``."""
    control = header.is_control
    return ProducerBatch(
        header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence,
        base_offset, base_offset + header.last_offset_delta, header.max_timestamp,
        header.is_transactional, control, end_marker(data) if control else None,
    )  # fmt: skip
