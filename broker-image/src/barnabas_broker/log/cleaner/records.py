"""Where the records of a batch lie in its records section, without taking them apart.

Compaction keeps or drops whole records. Those that stay are copied as they are: only when the
base timestamp of their batch moves is the one field rewritten that depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas_kafka.records.batch import CorruptBatch, varint
from barnabas_kafka.records.builder import append_varint


class Span(NamedTuple):
    """One record: ``section[start:end]``, its fields behind the timestamp from ``rest`` on."""

    start: int
    rest: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def spans(section: bytes, count: int) -> list[Span]:
    """The records of a decompressed section. Raises CorruptBatch."""
    found: list[Span] = []
    start = 0
    try:
        for _ in range(count):
            span = _span(section, start)
            found.append(span)
            start = span.end
    except IndexError:
        raise CorruptBatch("the records end in the middle of a number") from None
    if start != len(section):
        raise CorruptBatch(f"{len(section) - start} bytes follow the last record")
    return found


def _span(section: bytes, start: int) -> Span:
    length, position = varint(section, start)
    end = position + length
    if length < 0 or end > len(section):
        raise CorruptBatch(f"a record of {length} bytes does not fit")
    timestamp_delta, rest = varint(section, position + 1, bits=64)
    offset_delta, position = varint(section, rest)
    size, position = varint(section, position)
    key: bytes | None = None
    if size >= 0:
        key = section[position : position + size]
        position += size
    size, position = varint(section, position)
    if position + max(size, 0) > end:
        raise CorruptBatch("a field does not fit in its record")
    return Span(start, rest, end, timestamp_delta, offset_delta, key, size >= 0)


def joined(section: bytes, kept: Sequence[Span]) -> bytes:
    """The section with only the ``kept`` records, which are in order; neighbours in one copy."""
    parts = []
    begin = end = kept[0].start if kept else 0
    for span in kept:
        if span.start != end:
            parts.append(section[begin:end])
            begin = span.start
        end = span.end
    parts.append(section[begin:end])
    return b"".join(parts)


def rebased(section: bytes, kept: Sequence[Span], shift: int) -> bytes:
    """The same with every timestamp delta increased by ``shift``."""
    result = bytearray()
    for span in kept:
        head = bytearray(1)
        append_varint(head, span.timestamp_delta + shift)
        append_varint(result, len(head) + span.end - span.rest)
        result += head
        result += section[span.rest : span.end]
    return bytes(result)
