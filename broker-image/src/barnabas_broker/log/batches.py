"""Walking the batches of a segment file by their headers, whatever their magic.

All three formats begin alike, and that is all a walk needs::

    0   base offset int64     magic 2: of the first record; magic 0 and 1: of the last one
    8   length int32          bytes that follow this field
    12  leader epoch int32    magic 2; magic 0 and 1 have their CRC32 here
    16  magic int8

The walk reads small windows with pread and skips over the records. A file that ends inside a
batch ends the walk; a length no format allows raises :class:`CorruptSegmentError`. The lengths
are checked against the file before anything is read or allocated by them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from barnabas_broker.log.files import DataFile
from barnabas_kafka.records.crc import crc32c

#: Bytes read to parse headers: an index interval of small batches fits.
HEADER_WINDOW = 8 * 1024

#: Bytes read at once when every byte is read.
SCAN_WINDOW = 1024 * 1024

_PREFIX = struct.Struct(">qiib")
_V2 = struct.Struct(">IhiqqqhiI")
_DELTA = struct.Struct(">i")
_DELTA_POSITION = 23
_TIMESTAMP = struct.Struct(">q")
_V2_HEADER = _PREFIX.size + _V2.size
_LENGTH_OVERHEAD = 12
#: The shortest record there is: a magic 0 message without key and value.
_SHORTEST_LENGTH = 14
_SHORTEST_V2_LENGTH = _V2_HEADER - _LENGTH_OVERHEAD
_LEGACY_CRC_END = 16
_V2_CRC_END = 21


class CorruptSegmentError(Exception):
    """Bytes that are not a batch at ``position`` of a segment file."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"at position {position}: {reason}")
        self.position = position
        self.reason = reason


class StoredBatch(NamedTuple):
    """What the log has to know of one batch in a file.

    ``base_offset`` of a magic 0 or 1 entry is its last offset: the first one is known only after
    decompression. Fields a format lacks are -1 (0 for ``attributes`` and
    ``record_count``).
    """

    position: int
    size: int
    base_offset: int
    last_offset: int
    magic: int
    leader_epoch: int
    max_timestamp: int
    crc: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    base_timestamp: int

    @property
    def next_position(self) -> int:
        return self.position + self.size

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & 0x20)


def parse(buffer: bytes | bytearray | memoryview, index: int, position: int) -> StoredBatch:
    """The batch whose header starts at ``index`` of ``buffer``; ``position`` is where in the file.

    At least a magic 2 header, or the whole batch if it is shorter, must be in the buffer.
    Raises CorruptSegmentError for an impossible length or an unknown magic.
    """
    base_offset, length, epoch_or_crc, magic = _PREFIX.unpack_from(buffer, index)
    if length < _SHORTEST_LENGTH:
        raise CorruptSegmentError(position, f"length {length} is shorter than any record")
    size = length + _LENGTH_OVERHEAD
    if magic == 2:
        if length < _SHORTEST_V2_LENGTH:
            raise CorruptSegmentError(position, f"length {length} is shorter than a batch header")
        crc, attributes, delta, first_ts, max_ts, pid, epoch, sequence, count = _V2.unpack_from(
            buffer, index + _PREFIX.size
        )
        return StoredBatch(
            position, size, base_offset, base_offset + delta, magic, epoch_or_crc, max_ts,
            crc, attributes, pid, epoch, sequence, count, first_ts,
        )  # fmt: skip
    if magic not in (0, 1):
        raise CorruptSegmentError(position, f"magic {magic} is unknown")
    timestamp = _TIMESTAMP.unpack_from(buffer, index + 18)[0] if magic == 1 else -1
    return StoredBatch(
        position, size, base_offset, base_offset, magic, -1, timestamp,
        epoch_or_crc & 0xFFFFFFFF, buffer[index + 17], -1, -1, -1, 0, timestamp,
    )  # fmt: skip


def walk(file: DataFile, position: int = 0, end: int | None = None) -> Iterator[StoredBatch]:
    """Batches from ``position`` (a batch boundary) to ``end`` (default: the end of the file).

    Stops before a batch that does not end within ``end``. Raises CorruptSegmentError.
    """
    limit = file.size if end is None else min(end, file.size)
    window, start = b"", position
    while limit - position > _PREFIX.size:
        index = position - start
        if index + _V2_HEADER > len(window) and start + len(window) < limit:
            window, start, index = file.read(position, HEADER_WINDOW), position, 0
        if not _whole_header(window, index):
            return
        batch = parse(window, index, position)
        if batch.next_position > limit:
            return
        yield batch
        position = batch.next_position


def find(file: DataFile, position: int, offset: int) -> StoredBatch | None:
    """The first batch at or after ``position`` whose last offset is at or above ``offset``.

    What ``walk`` would find, at a fraction of its cost: of the batches passed over only length,
    magic and last offset are read.
    """
    limit = file.size
    window, start = b"", position
    while limit - position > _PREFIX.size:
        index = position - start
        if index + _V2_HEADER > len(window) and start + len(window) < limit:
            window, start, index = file.read(position, HEADER_WINDOW), position, 0
        if not _whole_header(window, index):
            return None
        last_offset, length, _, magic = _PREFIX.unpack_from(window, index)
        if magic == 2:
            last_offset += _DELTA.unpack_from(window, index + _DELTA_POSITION)[0]
        if last_offset >= offset or length < _SHORTEST_LENGTH:
            batch = parse(window, index, position)
            return batch if batch.next_position <= limit else None
        position += length + _LENGTH_OVERHEAD
    return None


def last_boundary(file: DataFile, position: int, limit: int) -> int:
    """The last batch boundary at or below ``limit``, from the one at ``position``."""
    window, start = b"", position
    end = min(limit, file.size)
    while end - position >= _LENGTH_OVERHEAD:
        index = position - start
        if index + _LENGTH_OVERHEAD > len(window):
            window, start, index = file.read(position, HEADER_WINDOW), position, 0
        (length,) = _DELTA.unpack_from(window, index + 8)
        if length < _SHORTEST_LENGTH:
            raise CorruptSegmentError(position, f"length {length} is shorter than any record")
        if position + length + _LENGTH_OVERHEAD > end:
            return position
        position += length + _LENGTH_OVERHEAD
    return position


def _whole_header(window: bytes, index: int) -> bool:
    """True when the buffer holds a header; a magic 0 message may end the file sooner than one."""
    rest = len(window) - index
    if rest >= _V2_HEADER:
        return True
    return rest > _PREFIX.size and rest >= int.from_bytes(window[index + 8 : index + 12], "big") + (
        _LENGTH_OVERHEAD
    )


def scan(file: DataFile, *, window: int = SCAN_WINDOW) -> Iterator[tuple[StoredBatch, memoryview]]:
    """Every batch with its bytes, checked by CRC; stops at a torn end, raises on anything wrong.

    Reads ``window`` bytes at a time; a batch larger than that is read alone, its size bounded by
    the file's.
    """
    view, start, position = memoryview(b""), 0, 0
    while file.size - position > _PREFIX.size:
        index = position - start
        if index + _V2_HEADER > len(view) and start + len(view) < file.size:
            view, start, index = memoryview(file.read(position, window)), position, 0
        if not _whole_header(bytes(view[index : index + _V2_HEADER]), 0):
            return
        batch = parse(view, index, position)
        if batch.next_position > file.size:
            return
        if index + batch.size > len(view):
            length = max(batch.size, window)
            view, start, index = memoryview(file.read(position, length)), position, 0
        data = view[index : index + batch.size]
        ensure_valid(batch, data)
        yield batch, data
        position = batch.next_position


def ensure_valid(batch: StoredBatch, data: bytes | bytearray | memoryview) -> None:
    """Check the CRC of a whole batch; raises CorruptSegmentError when it does not match."""
    view = memoryview(data)
    if batch.magic == 2:
        computed = crc32c(view[_V2_CRC_END : batch.size])
    else:
        computed = zlib.crc32(view[_LEGACY_CRC_END : batch.size])
    if computed != batch.crc:
        raise CorruptSegmentError(
            batch.position, f"CRC is {batch.crc:#010x}, the bytes give {computed:#010x}"
        )


def whole_batches(buffer: memoryview) -> Iterator[StoredBatch]:
    """The whole batches of a buffer a leader sent, checked by CRC; positions in the buffer.

    Stops at a batch that is cut off, as fetch responses may end. Raises CorruptSegmentError.
    """
    position, end = 0, len(buffer)
    while end - position > _PREFIX.size:
        if not _whole_header(bytes(buffer[position : position + _V2_HEADER]), 0):
            return
        batch = parse(buffer, position, position)
        if batch.next_position > end:
            return
        ensure_valid(batch, buffer[position : batch.next_position])
        yield batch
        position = batch.next_position
