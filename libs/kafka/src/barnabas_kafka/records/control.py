"""Control records: what a transaction's end looks like in a partition.

A control batch holds one record, written by a transaction coordinator through the partition's
leader, never by a client. Its key is (version int16, type int16). The value of the two transaction
markers is (version int16, coordinator epoch int32). Readers accept higher versions with more
fields behind the known ones; see KIP-98.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from barnabas_kafka.records.batch import CorruptBatch
from barnabas_kafka.records.builder import build_batch

_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """What a control record says."""

    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    """A transaction's end: how it ended, and the epoch of the coordinator that says so."""

    control_type: ControlType
    coordinator_epoch: int


def control_key(control_type: ControlType) -> bytes:
    """The key of a control record."""
    return _KEY.pack(_VERSION, control_type)


def parse_control_key(key: bytes | None) -> ControlType | None:
    """The type of a control record; None for one this version does not know and must skip.

    Raises CorruptBatch for a key that is too short or of a negative version.
    """
    if key is None or len(key) < _KEY.size:
        raise CorruptBatch("a control record without a whole key")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatch(f"a control record key of version {version}")
    return ControlType(number) if number in (ControlType.ABORT, ControlType.COMMIT) else None


def parse_end_transaction(key: bytes | None, value: bytes | None) -> EndTransactionMarker | None:
    """The transaction marker in a control record, or None if it is some other control record.

    Raises CorruptBatch for a malformed key or value.
    """
    control_type = parse_control_key(key)
    if control_type is None:
        return None
    if value is None or len(value) < _MARKER_VALUE.size:
        raise CorruptBatch("a transaction marker without a whole value")
    version, coordinator_epoch = _MARKER_VALUE.unpack_from(value)
    if version < 0:
        raise CorruptBatch(f"a transaction marker of version {version}")
    return EndTransactionMarker(control_type, coordinator_epoch)


def build_end_transaction(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
) -> bytes:
    """The control batch that ends a producer's transaction in a partition, at offset 0."""
    value = _MARKER_VALUE.pack(_VERSION, marker.coordinator_epoch)
    return build_batch(
        [(timestamp_ms, control_key(marker.control_type), value, ())],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
