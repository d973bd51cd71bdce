"""Batches that no builder makes: as compaction and brokers' clocks leave them, or malformed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas_kafka.records.batch import APPEND_TIME_FLAG, DELETE_HORIZON_FLAG, parse_header
from barnabas_kafka.records.builder import (
    RecordContent,
    build_batch,
    encode_records,
    recode_batch,
)
from barnabas_kafka.records.compression import Codec


def stored_batch(
    records: Sequence[RecordContent],
    *,
    codec: Codec = Codec.NONE,
    offset_deltas: Sequence[int] | None = None,
    last_offset_delta: int | None = None,
    max_timestamp: int | None = None,
    append_time: bool = False,
    delete_horizon_ms: int | None = None,
    **fields: Any,
) -> bytes:
    """`build_batch`, but for what is given: distances to the base offset and what the header says.

    The batch spans up to `last_offset_delta`, default the last record's. `max_timestamp` is the
    append time where `append_time` says so.
    """
    header = parse_header(build_batch(records, **fields))
    deltas = range(len(records)) if offset_deltas is None else offset_deltas
    if delete_horizon_ms is not None:
        flags = header.attributes | DELETE_HORIZON_FLAG
        header = header._replace(attributes=flags, base_timestamp=delete_horizon_ms)
    if append_time:
        header = header._replace(attributes=header.attributes | APPEND_TIME_FLAG)
    if max_timestamp is not None:
        header = header._replace(max_timestamp=max_timestamp)
    if last_offset_delta is None:
        last_offset_delta = deltas[-1] if records else 0
    section = encode_records(records, deltas, header.base_timestamp)
    header = header._replace(last_offset_delta=last_offset_delta)
    return bytes(recode_batch(header, bytes(section), codec))
