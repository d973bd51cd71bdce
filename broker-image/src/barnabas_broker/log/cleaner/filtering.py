"""What is left of one batch after a cleaning.

The rules, in the order in which they are asked (Apache Kafka's Cleaner and MemoryRecords):

1. Batches of aborted transactions lose all records. A marker that nothing needs any more gets a
   delete horizon, and goes when that has passed.
2. A record goes when a later one has its key, when it has no key at all, or when it is a tombstone
   (no value) whose delete horizon has passed. What lies above the reach of the offset map stays.
3. The first cleaning that leaves a tombstone in a batch writes the delete horizon into it: now
   plus ``delete.retention.ms`` in place of the base timestamp, flagged by attribute bit 6
   (KIP-534). Every replica counts from its own first cleaning, and a restart forgets nothing.
4. A batch without records goes too, unless it is the last of its producer (it holds the sequence
   and epoch the next batch is judged by) or the last of the cleaned range: then its header stays.

What stays keeps offsets, leader epoch, producer fields, codec and timestamps. A batch from which
nothing goes is passed on byte for byte. Formats 0 and 1 have no horizon: their tombstones go by
the age of their segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas_broker.log.batches import StoredBatch
from barnabas_broker.log.cleaner import records
from barnabas_broker.log.cleaner.offset_map import OffsetMap
from barnabas_broker.log.cleaner.transactions import CleanedTransactions
from barnabas_kafka.records.batch import (
    DELETE_HORIZON_FLAG,
    BatchHeader,
    CorruptBatch,
    Record,
    parse_header,
    records_section,
)
from barnabas_kafka.records.builder import recode_batch
from barnabas_kafka.records.compression import Codec, CompressionError
from barnabas_kafka.records.control import ControlType, parse_control_key
from barnabas_kafka.records.legacy import (
    Message,
    build_message_set,
    open_wrapper,
    parse_message,
)


class LastRecord(NamedTuple):
    """The end of a producer: its last data offset (None: only markers so far) and its epoch."""

    data_offset: int | None
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one cleaning goes by; ``upper_bound`` is the first offset it leaves alone."""

    now_ms: int
    delete_retention_ms: int
    upper_bound: int
    producers: Mapping[int, LastRecord]


@dataclass(slots=True)
class Counts:
    """Records and bytes that came in and stayed; ``keyless`` records were dropped as invalid."""

    records_read: int = 0
    records_kept: int = 0
    bytes_read: int = 0
    bytes_kept: int = 0
    keyless: int = 0


class Kept(NamedTuple):
    """A batch to write: its bytes and greatest timestamp."""

    data: bytes | memoryview
    max_timestamp: int


class BatchFilter:
    """Asks the rules about batches, in the order of the log."""

    def __init__(self, rules: Rules, offsets: OffsetMap, transactions: CleanedTransactions) -> None:
        self._rules = rules
        self._offsets = offsets
        self._transactions = transactions
        self.counts = Counts()

    def filter(
        self, batch: StoredBatch, data: memoryview, *, keep_legacy_tombstones: bool
    ) -> Kept | None:
        """What is left of a batch; None for nothing. Raises CorruptBatch."""
        self.counts.bytes_read += batch.size
        if batch.magic < 2:
            kept = self._legacy(batch, data, keep_legacy_tombstones)
        else:
            kept = self._current(batch, data)
        if kept is not None:
            self.counts.bytes_kept += len(kept.data)
        return kept

    # --- format 2 ----------------------------------------------------------------------------

    def _current(self, batch: StoredBatch, data: memoryview) -> Kept | None:
        header = parse_header(data)
        section = section_of(data, header)
        found = records.spans(section, header.record_count)
        unneeded = self._unneeded(batch, found, section)
        drop_all = unneeded
        if batch.is_control:
            horizon = header.delete_horizon_ms
            drop_all = unneeded and horizon is not None and horizon <= self._rules.now_ms
        self.counts.records_read += len(found)
        kept = [] if drop_all else found
        if not drop_all and not batch.is_control:
            kept = [span for span in found if self._keeps(header, span)]
        self.counts.records_kept += len(kept)
        if not kept:
            return self._emptied(batch, header)
        tombstones = any(not span.has_value for span in kept)
        marked = header.delete_horizon_ms is not None
        begins = not marked and (tombstones or (unneeded and batch.is_control))
        if len(kept) == len(found) and not begins:
            return Kept(data, header.max_timestamp)
        return self._rebuilt(header, section, kept, horizon_begins=begins)

    def _unneeded(self, batch: StoredBatch, found: list[records.Span], section: bytes) -> bool:
        if not batch.is_control:
            return self._transactions.batch_read(batch)
        kind = _control_kind(found)
        return self._transactions.marker_read(batch, kind, empty=not found)

    def _keeps(self, header: BatchHeader, span: records.Span) -> bool:
        horizon = header.delete_horizon_ms
        return self._stays(
            header.base_offset + span.offset_delta,
            span.key,
            protected=span.has_value or horizon is None or self._rules.now_ms < horizon,
        )

    def _stays(self, offset: int, key: bytes | None, *, protected: bool) -> bool:
        """Rule 2 for one record; ``protected`` unless it is a tombstone past its horizon."""
        if offset > self._offsets.latest_offset:
            return True
        if key is None:
            self.counts.keyless += 1
            return False
        return protected and offset >= self._offsets.get(key)

    def _emptied(self, batch: StoredBatch, header: BatchHeader) -> Kept | None:
        """The header of a batch without records, where rule 4 wants it."""
        rules = self._rules
        last = rules.producers.get(batch.producer_id) if batch.producer_id >= 0 else None
        if last is None:
            ends_producer = False
        elif last.data_offset is not None:
            ends_producer = batch.last_offset == last.data_offset
        else:
            ends_producer = batch.is_control and batch.producer_epoch == last.epoch
        if not ends_producer and batch.last_offset + 1 != rules.upper_bound:
            return None
        empty = header._replace(
            attributes=header.attributes & ~DELETE_HORIZON_FLAG,
            base_timestamp=-1,
            record_count=0,
        )
        return Kept(bytes(recode_batch(empty, b"", Codec.NONE)), header.max_timestamp)

    def _rebuilt(
        self,
        header: BatchHeader,
        section: bytes,
        kept: list[records.Span],
        *,
        horizon_begins: bool,
    ) -> Kept:
        """A batch with some of its records, or with a new base timestamp, or both."""
        base = header.base_timestamp
        latest = header.max_timestamp
        if not header.timestamp_type:
            latest = max(base + span.timestamp_delta for span in kept)
        changed = header._replace(max_timestamp=latest, record_count=len(kept))
        if horizon_begins:
            horizon = self._rules.now_ms + self._rules.delete_retention_ms
            changed = changed._replace(
                base_timestamp=horizon, attributes=header.attributes | DELETE_HORIZON_FLAG
            )
            content = records.rebased(section, kept, base - horizon)
        else:
            content = records.joined(section, kept)
        return Kept(bytes(recode_batch(changed, content, header.codec)), latest)

    # --- formats 0 and 1 ---------------------------------------------------------------------

    def _legacy(self, batch: StoredBatch, data: memoryview, keep_tombstones: bool) -> Kept | None:
        self._transactions.batch_read(batch)
        entry = parse_message(data, 0, batch.size)
        found = messages_of(entry)
        kept = [
            message
            for message in found
            if self._stays(
                message.offset,
                message.key,
                protected=message.value is not None or keep_tombstones,
            )
        ]
        self.counts.records_read += len(found)
        self.counts.records_kept += len(kept)
        if len(kept) == len(found):
            return Kept(data, batch.max_timestamp)
        if not kept:
            return None
        content = build_message_set(
            [Record(*message[:4]) for message in kept],
            magic=entry.magic,
            codec=entry.codec,
            timestamp_type=entry.timestamp_type,
        )
        return Kept(content, max(message.timestamp for message in kept))


def section_of(data: memoryview, header: BatchHeader) -> bytes:
    """The decompressed records of a batch. Raises CorruptBatch."""
    try:
        return records_section(data, 0, header)
    except CompressionError as error:
        raise CorruptBatch(str(error)) from error


def messages_of(entry: Message) -> list[Message]:
    """The messages in an entry of format 0 or 1. Raises CorruptBatch."""
    if entry.codec is Codec.NONE:
        return [entry]
    try:
        return open_wrapper(entry)
    except CompressionError as error:
        raise CorruptBatch(str(error)) from error


def _control_kind(found: list[records.Span]) -> ControlType | None:
    return parse_control_key(found[0].key) if found else None
