"""Finding records by time, with the time index and a walk over a few batches.

Sources: KIP-33 (the time index), KIP-734 (the offset of the greatest timestamp); Apache Kafka's
UnifiedLog.fetchOffsetByTimestamp and FileRecords.searchForTimestamp. Answers are
(offset, timestamp, leader epoch), the epoch -1 for batches that carry none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from barnabas_broker.log import batches
from barnabas_broker.log.batches import StoredBatch
from barnabas_broker.log.contents import records_of
from barnabas_broker.log.segment import Segment

Found = tuple[int, int, int]


def first_at_or_after(
    segments: Sequence[Segment], timestamp: int, start_offset: int
) -> Found | None:
    """The first record from ``start_offset`` on with at least ``timestamp``, in offset order.

    The first segment with a young enough record is searched, and mostly no other: compaction may
    have taken that record, and left the header that promises it, or nothing at all.
    """
    for segment in segments:
        if segment.largest_timestamp >= timestamp:
            found = _search(segment, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _search(segment: Segment, timestamp: int, start_offset: int) -> Found | None:
    indexed = segment.times.lookup(timestamp)[1]
    position = segment.offsets.lookup(max(indexed, start_offset))[1]
    for batch in batches.walk(segment.file, position):
        if batch.max_timestamp < timestamp or batch.last_offset < start_offset:
            continue
        for offset, time in _times(segment, batch):
            if time >= timestamp and offset >= start_offset:
                return offset, time, batch.leader_epoch
    return None


def youngest(segments: Sequence[Segment]) -> Found | None:
    """The first record that has the greatest timestamp of the log."""
    best = max(segments, key=_max_timestamp)
    if best.max_timestamp < 0:
        return None
    position = best.offsets.lookup(best.offset_of_max_timestamp)[1]
    for batch in batches.walk(best.file, position):
        if batch.max_timestamp == best.max_timestamp:
            for offset, time in _times(best, batch):
                if time == best.max_timestamp:
                    return offset, time, batch.leader_epoch
    return None


def _max_timestamp(segment: Segment) -> int:
    return segment.max_timestamp


def _times(segment: Segment, batch: StoredBatch) -> Iterator[tuple[int, int]]:
    data = segment.file.read(batch.position, batch.size)
    for record in records_of(batch, data):
        yield record.offset, record.timestamp
