"""Producer state as bytes: the ``<offset>.snapshot`` file.

Layout, big-endian (Apache Kafka's ProducerStateManager)::

    version int16 (1) | CRC-32C uint32 of all that follows | count int32 | entries

    entry: producer id int64 | epoch int16 | last sequence int32 | last offset int64
           | offset delta int32 | timestamp int64 | coordinator epoch int32
           | first offset of the open transaction int64 (-1: none)

The file is named after the offset up to which it is complete. Only the last batch of a producer
is kept: after a restart from a snapshot a duplicate of an older one is not recognised as such but
refused as out of order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from barnabas_broker.log.producer_state import BatchMetadata, ProducerEntry
from barnabas_kafka.records.crc import crc32c

_VERSION = 1
_HEADER = struct.Struct(">hIi")
_CRC_END = 6
_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshotError(Exception):
    """A snapshot whose bytes cannot be trusted; the next older one serves instead."""


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    """The snapshot file of ``entries``."""
    packed = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else BatchMetadata(-1, -1, 0, -1)
        packed.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
        )
    body = struct.pack(">i", len(packed)) + b"".join(packed)
    return struct.pack(">hI", _VERSION, crc32c(body)) + body


def decode(data: bytes) -> list[ProducerEntry]:
    """The producers in a snapshot file; raises CorruptSnapshotError."""
    if len(data) < _HEADER.size:
        raise CorruptSnapshotError(f"{len(data)} bytes are too few for a snapshot")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"version {version} is unknown")
    computed = crc32c(memoryview(data)[_CRC_END:])
    if computed != crc:
        raise CorruptSnapshotError(f"CRC is {crc:#010x}, the bytes give {computed:#010x}")
    if count < 0 or len(data) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshotError(f"{count} entries do not fill {len(data)} bytes")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size :])]


def _entry(*fields: int) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first = fields
    batches = (BatchMetadata(sequence, offset, delta, timestamp),) if offset >= 0 else ()
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, txn_first, batches)
