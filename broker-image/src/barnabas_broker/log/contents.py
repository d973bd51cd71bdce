"""The records inside a stored batch, whatever its magic."""

from __future__ import annotations

from barnabas_broker.log.batches import StoredBatch
from barnabas_kafka.records import legacy
from barnabas_kafka.records.batch import Record, records
from barnabas_kafka.records.legacy import Message


def records_of(
    batch: StoredBatch, data: bytes | bytearray | memoryview
) -> list[Record] | list[Message]:
    """The records of one whole batch, decompressed; offsets are absolute.

    Both kinds have ``offset``, ``timestamp``, ``key`` and ``value``. Raises CorruptBatch.
    """
    return records(data) if batch.magic == 2 else legacy.messages(data)
