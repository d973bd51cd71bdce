"""Batches as clients and the broker itself read them, with the walk that decides over them.

Input: one byte (mend length and checksum, down-convert to 0 or 1), then batches.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from barnabas_kafka.records import batch, control, legacy, walk
from barnabas_kafka.records.batch import CorruptBatch, Record
from barnabas_kafka.records.compression import Codec, CompressionError
from fuzz import pure_walk
from fuzz.batches import mend, random_batch
from fuzz.oracle import promise

_LIMIT: Final = 1 << 20
_MEND: Final = 2


def check(data: bytes) -> None:
    """Reading ends in records or in the error that is told; walks agree, and with the reader."""
    if not data:
        return
    buffer = mend(data[1:]) if data[0] & _MEND else data[1:]
    _read_old(buffer)
    _walk(buffer)
    try:
        for position, header in batch.headers(buffer, allow_partial=True):
            _read(buffer, position, header)
    except CorruptBatch:
        pass
    try:
        legacy.down_convert(buffer, magic=data[0] & 1, limit=_LIMIT)
    except (CorruptBatch, CompressionError, legacy.UnsupportedConversion):
        pass


def _read(buffer: bytes, position: int, header: batch.BatchHeader) -> None:
    walked = None
    try:
        section = batch.records_section(buffer, position, header, limit=_LIMIT)
    except (CorruptBatch, CompressionError):
        return
    if 0 <= header.record_count <= len(section):
        walked = _walk_section(section, header.record_count, header.base_timestamp)
    try:
        records = batch.parse_records(section, header)
    except CorruptBatch:
        promise(walked != walk.OK, "walked without fault, but cannot be read")
        return
    promise(len(records) == header.record_count, "records beside those that are counted")
    for record in records:
        _read_marker(record)


def _read_marker(record: Record) -> None:
    try:
        control.parse_end_transaction(record.key, record.value)
    except CorruptBatch:
        pass


def _walk(data: bytes) -> None:
    for keys in (False, True):
        answers = [
            way.plain_batch(
                before + data + before,
                len(before),
                len(before) + len(data),
                largest=_LIMIT,
                oldest=0,
                newest=walk.LARGEST,
                key_required=keys,
            )
            for way in (walk, pure_walk.load())
            for before in (b"", b"\xff\x01")
        ]
        promise(len(set(answers)) == 1, "plain, compiled and from source, in a buffer", answers)
    _walk_section(data, min(len(data), 4), 0)


def _walk_section(section: bytes, count: int, base: int) -> int:
    def one(key_required: bool, oldest: int) -> tuple[int, ...]:
        answers = [
            way.walk(
                section,
                0,
                index=0,
                count=count,
                base_timestamp=base,
                oldest=oldest,
                newest=walk.LARGEST,
                key_required=key_required,
            )
            for way in (walk, pure_walk.load())
        ]
        promise(answers[0] == answers[1], "compiled and from source", answers)
        return tuple(answers[0])

    one(True, 0)
    return one(False, walk.SMALLEST)[0]


def _read_old(buffer: bytes) -> None:
    try:
        messages = legacy.messages(buffer, limit=_LIMIT)
    except CorruptBatch:
        return
    for message in messages:
        written = legacy.encode_message(message)
        read = legacy.parse_message(written, 0, len(written))
        promise(read == message, "an old message changes", message, read)


def seeds() -> Iterator[bytes]:
    """Batches of every format and codec."""
    chance = random.Random(4)
    for magic in (0, 1, 2):
        for codec in Codec:
            yield bytes((_MEND,)) + random_batch(chance, magic, codec)
    yield b"\0" + b"".join(random_batch(chance, 2, Codec.NONE) for _ in "ab")
