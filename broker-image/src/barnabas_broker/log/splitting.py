"""Splitting a segment whose offsets no longer fit in 31 bits above its name.

Brokers of old wrote such segments: compaction merged neighbours that lie too far apart, and
followers appended behind large gaps. Index entries of what lies beyond are wrong, and so is what
is looked up by them. As Apache Kafka's ``splitOverflowedSegment`` does, the segment is replaced by
several, byte for byte, each named after its first batch.

The replacement is one of compaction's: copies are ``*.cleaned`` until all are synced, then become
``*.swap`` from the last to the first; from the moment the first one is, the next settling of the
directory completes it, and until then removes it (rows F2 to F4 of ``recovery``).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from barnabas_broker.log import batches
from barnabas_broker.log.batches import CorruptSegmentError, StoredBatch
from barnabas_broker.log.files import DataFile, rename, set_times, sync_directory, sync_file
from barnabas_broker.log.indexes import MAX_RELATIVE_OFFSET
from barnabas_broker.log.names import CLEANED, LOG, SWAP, segment_file
from barnabas_kafka.records.batch import CorruptBatch
from barnabas_kafka.records.compression import Codec, CompressionError
from barnabas_kafka.records.legacy import open_wrapper, parse_message

_COPIED_AT_ONCE = 1024 * 1024


class Piece(NamedTuple):
    """Bytes ``start`` to ``end`` of the segment, and the base offset they get."""

    base_offset: int
    start: int
    end: int


def pieces(file: DataFile, base_offset: int) -> list[Piece]:
    """How a segment is cut so that every offset fits.

    What is no batch, and all behind it, stays with the last piece: whether it is to go is for
    recovery to say. Raises OSError.
    """
    cuts = [(base_offset, 0)]
    try:
        for batch, data in batches.scan(file):
            if batch.last_offset - cuts[-1][0] > MAX_RELATIVE_OFFSET:
                cuts.append((_first_offset(batch, data), batch.position))
    except (CorruptSegmentError, CorruptBatch, CompressionError):
        pass
    ends = [start for _, start in cuts[1:]] + [file.size]
    return [Piece(base, start, end) for (base, start), end in zip(cuts, ends, strict=True)]


def _first_offset(batch: StoredBatch, data: memoryview) -> int:
    """Of formats 0 and 1 a compressed entry's header has the last offset alone."""
    if batch.magic >= 2:
        return batch.base_offset
    entry = parse_message(data, 0, batch.size)
    return batch.base_offset if entry.codec is Codec.NONE else open_wrapper(entry)[0].offset


def split(directory: Path, base_offset: int) -> list[int]:
    """Prepare the segment's replacement, durably; returns the base offsets of its pieces.

    The next settling of the directory's files puts them in place. Raises OSError; what it
    left behind is removed by the same.
    """
    path = segment_file(directory, base_offset, LOG)
    file = DataFile.open(path, writable=False)
    modified_ns = path.stat().st_mtime_ns
    made = pieces(file, base_offset)
    for piece in made:
        _copy(file, piece, _named(directory, piece, CLEANED), modified_ns)
    sync_directory(directory)
    for piece in reversed(made):
        if piece is made[0]:
            # With this one the replacement is complete, so the others must be on the device.
            sync_directory(directory)
        rename(_named(directory, piece, CLEANED), _named(directory, piece, SWAP))
    sync_directory(directory)
    return [piece.base_offset for piece in made]


def _named(directory: Path, piece: Piece, suffix: str) -> Path:
    path = segment_file(directory, piece.base_offset, LOG)
    return path.with_name(path.name + suffix)


def _copy(file: DataFile, piece: Piece, target: Path, modified_ns: int) -> None:
    copy = DataFile.create(target)
    position = piece.start
    while position < piece.end:
        data = file.read(position, min(_COPIED_AT_ONCE, piece.end - position))
        copy.append(data)
        position += len(data)
    # Retention goes on seeing the age of the original.
    set_times(target, modified_ns)
    sync_file(target)
