"""What happens to batches before they are written: offsets, stamps, and their producers' side.

Pure but for the buffer: the leader writes base offset and leader epoch into it, in place, because
neither is covered by the checksum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from barnabas_broker.invariants import violated
from barnabas_broker.log import batches as stored
from barnabas_broker.log import markers
from barnabas_broker.log.batches import CorruptSegmentError, StoredBatch
from barnabas_broker.log.producer_state import BatchMetadata, ProducerBatch, ProducerState
from barnabas_broker.log.segment import Appended
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.batch import LOG_OVERHEAD, BatchHeader, stamp


class ValidatedBatches(Protocol):
    """What the validator hands over: whole magic 2 batches in a buffer that may be stamped."""

    @property
    def buffer(self) -> bytearray | memoryview: ...
    @property
    def headers(self) -> Sequence[tuple[int, BatchHeader]]: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def saved_bytes(self) -> int | None: ...


class AppendInfo(NamedTuple):
    """Where batches went, or where they already were (``duplicate``).

    ``log_append_time`` is -1 under CreateTime.
    """

    first_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    max_timestamp: int
    duplicate: bool = False


#: Batches with their offsets: what the segment needs, and what the producer state needs.
Stamped = tuple[list[Appended], list[ProducerBatch]]


def stamp_batches(batches: ValidatedBatches, first_offset: int, leader_epoch: int) -> Stamped:
    """Give batches consecutive offsets from ``first_offset`` on, in their buffer."""
    buffer = batches.buffer
    offset = first_offset
    appended: list[Appended] = []
    sequenced: list[ProducerBatch] = []
    for position, header in batches.headers:
        last_offset = offset + header.last_offset_delta
        assert last_offset >= offset, violated("a batch takes at least one offset")
        size = header.batch_length + LOG_OVERHEAD
        appended.append((size, last_offset, header.max_timestamp))
        stamp(buffer, position, base_offset=offset, leader_epoch=leader_epoch)
        if header.producer_id >= 0:
            data = memoryview(buffer)[position : position + size]
            sequenced.append(markers.new_producer_batch(header, offset, data))
        offset = last_offset + 1
    return appended, sequenced


def find_duplicate(
    producers: ProducerState, sequenced: Sequence[ProducerBatch]
) -> BatchMetadata | None:
    """The original of the first batch that was appended before; None when all are new."""
    for batch in sequenced:
        original = producers.find_duplicate(batch)
        if original is not None:
            return original
    return None


def whole_batches(view: memoryview, tp: TopicPartition, log_end_offset: int) -> list[StoredBatch]:
    """The whole batches a leader sent, checked to continue the log.

    Raises KafkaError CORRUPT_MESSAGE and OFFSET_OUT_OF_RANGE.
    """
    try:
        found = list(stored.whole_batches(view))
    except CorruptSegmentError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{tp}: {error}") from error
    expected = log_end_offset
    for batch in found:
        if batch.base_offset < expected:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{tp} ends at {expected} and cannot take offset {batch.base_offset}",
            )
        expected = batch.last_offset + 1
    return found


def as_stored(found: Sequence[StoredBatch], view: memoryview) -> Stamped:
    """What segment and producer state need of batches that come with their offsets."""
    appended = [(batch.size, batch.last_offset, batch.max_timestamp) for batch in found]
    sequenced = [
        markers.stored_producer_batch(batch, view[batch.position : batch.next_position])
        for batch in found
        if batch.producer_id >= 0
    ]
    return appended, sequenced
