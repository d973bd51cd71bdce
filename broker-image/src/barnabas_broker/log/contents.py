"""The records inside a stored batch, whatever its magic."""

from __future__ import annotations

from barnabas_broker.log.batches import StoredBatch
from barnabas_kafka.records import legacy
from barnabas_kafka.records.batch import (
    HEADER_SIZE,
    Record,
    parse_header,
    records,
    records_section,
)
from barnabas_kafka.records.legacy import Message

#: Bytes of an entry of a message set beside key and value, by magic.
_OLD_OVERHEAD = (26, 34)


def records_of(
    batch: StoredBatch, data: bytes | bytearray | memoryview
) -> list[Record] | list[Message]:
    """The records of one whole batch, decompressed; offsets are absolute.

    Both kinds have ``offset``, ``timestamp``, ``key`` and ``value``. Raises CorruptBatch.
    """
    return records(data) if batch.magic == 2 else legacy.messages(data)


def inflated(batch: StoredBatch, data: bytes | bytearray | memoryview) -> tuple[int, int]:
    """How many records one whole batch holds, and its bytes without compression.

    Raises CorruptBatch.
    """
    if batch.magic == 2:
        section = records_section(data, 0, parse_header(data))
        return batch.record_count, HEADER_SIZE + len(section)
    found = legacy.messages(data)
    content = sum(len(each.key or b"") + len(each.value or b"") for each in found)
    return len(found), content + len(found) * _OLD_OVERHEAD[batch.magic]
