"""The four codecs of record batches, each decompressed under a cap.

What the codecs' frames look like is part of Kafka's format, since every consumer must read them:

* **gzip**: RFC 1952; several members may follow each other.
* **snappy**: Java writes the stream of the snappy-java library (called *xerial*): an eight-byte
  magic, two 32-bit version numbers, then blocks of at most 32 KiB, each a big-endian 32-bit length
  and one raw snappy block. A payload without that magic is one raw snappy block.
* **lz4**: the LZ4 frame format, but Kafka's Java reader knows only independent blocks and no
  dictionary, so a frame with either is refused here although the library could read it.
  Format 0 messages carry a wrong header checksum on purpose: old Java writers computed it over the
  frame's magic number too (KIP-57). We write that quirk for magic 0 and read both.
* **zstd**: RFC 8878 (KIP-110); allowed since Produce 7 and Fetch 10, only in format 2.

Nothing here allocates more than the cap allows, whatever a frame claims about itself: a few
kilobytes of compressed zeros must not be able to bring a broker down.

cramjam, which reads snappy and large gzip, is imported where it is needed: it takes 1.6 MiB, and
many brokers see neither.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum
from functools import partial
from typing import Any, Self

import lz4.frame
import zstandard

from barnabas_kafka.records.pages import filled, release


class Codec(IntEnum):
    """A codec by its number in the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(ValueError):
    """Compressed data that does not decompress: damaged, cut short, or with a tail."""


class DecompressedTooLarge(CompressionError):  # noqa: N818
    """Compressed data that holds more than the caller is ready to accept."""


#: What a payload may grow to where the caller has no tighter rule: reading a log this broker
#: wrote. It is far above any sensible batch and far below what would hurt a small process.
DEFAULT_LIMIT = 256 * 1024 * 1024

# Members and frames may follow each other, but no producer writes more than one, and thousands of
# empty ones would cost more time than bytes.
_PARTS_LIMIT = 64

# More than this is decompressed into one buffer, without the interpreter's lock.
_SMALL = 256 << 10

# What cramjam says where the buffer is full and there is more: Rust's words for it.
_NO_ROOM = "failed to write whole buffer"

# What a codec is asked for at once. Some copy what they return while no other thread may run, and
# the joining of pieces does not: 60 MiB in one piece would stop all threads for tens of
# milliseconds.
_PIECE = 64 << 10

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024
_INT32 = struct.Struct(">i")

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_DEFAULT_LEVEL = 9  # Kafka's default level is lz4's fast mode, not its level 9.
_LZ4_HIGHEST_LEVEL = 12
_LZ4_USUAL_RATIO = 8  # Few contents compress to less than an eighth.

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # Skippable frames have others; no producer writes them.
_ZSTD_DEFAULT_LEVEL = 3
_ZSTD_BLOCK = 128 * 1024
_ZSTD_LARGEST_WINDOW = 1 << 27  # What zstd's own decoder accepts by default.


def compress(
    codec: Codec,
    data: bytes | bytearray | memoryview,
    level: int | None = None,
    *,
    magic: int = 2,
) -> bytes:
    """Compress the records section (or legacy message set) `data` the way Java clients read it.

    `level` is on Kafka's scale for the codec (`compression.<codec>.level`); None is the default.
    `magic` is the format of the message that will hold the result; only lz4 cares.
    """
    if codec is Codec.GZIP:
        packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
        return packer.compress(data) + packer.flush()
    if codec is Codec.SNAPPY:
        return _compress_xerial(data)
    if codec is Codec.LZ4:
        frame = _compress_lz4(data, level)
        return _spoil_lz4_checksum(frame) if magic == 0 else frame
    if codec is Codec.ZSTD:
        zstd_level = _ZSTD_DEFAULT_LEVEL if level is None else level
        return zstandard.ZstdCompressor(level=zstd_level).compress(data)
    return bytes(data)


def decompress(
    codec: Codec,
    data: bytes | bytearray | memoryview,
    *,
    limit: int = DEFAULT_LIMIT,
    magic: int = 2,
) -> bytes:
    """Decompress `data`, refusing to produce more than `limit` bytes.

    Raises DecompressedTooLarge past the limit and CompressionError for anything malformed.
    """
    if codec is Codec.GZIP:
        return _decompress_gzip(data, limit)
    if codec is Codec.SNAPPY:
        return _decompress_snappy(data, limit)
    if codec is Codec.LZ4:
        return _decompress_lz4(data, limit, magic)
    if codec is Codec.ZSTD:
        return _decompress_zstd(data, limit)
    if len(data) > limit:
        raise DecompressedTooLarge(f"{len(data)} bytes where {limit} are allowed")
    return bytes(data)


def _too_large(limit: int) -> DecompressedTooLarge:
    return DecompressedTooLarge(f"the compressed records hold more than {limit} bytes")


class _Pieces(list[bytes]):
    """Pieces to be joined within a `with`.

    Afterwards, and also where they are refused, they are forgotten one by one, the last first: the
    C library gives memory back from the end of its heap, and 60 MiB at once would take it 5 ms.
    Else an error would keep them until the event loop has answered with it. There must be no
    other reference to them.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self:
            self.pop()


# gzip


def claimed_by_gzip(data: bytes | bytearray | memoryview) -> int:
    """How many bytes `data` says that its last member holds, modulo 2^32, in its last four.

    It is unverified: good for choosing where to decompress, not for what to allocate.
    """
    return int.from_bytes(data[-4:], "little")


def _decompress_gzip(data: bytes | bytearray | memoryview, limit: int) -> bytes:
    if limit <= _SMALL:
        return _decompress_small_gzip(data, limit)
    claimed = claimed_by_gzip(data)
    if claimed <= _SMALL:
        # True unless there are several members or it is a lie, which is found out soon.
        with suppress(DecompressedTooLarge):
            return _decompress_small_gzip(data, _SMALL)
    import cramjam

    for most in (claimed, limit) if _SMALL < claimed < limit else (limit,):
        try:
            return filled(partial(cramjam.gzip.decompress_into, data), most)
        except cramjam.DecompressionError as error:
            if _NO_ROOM not in str(error):
                raise CompressionError(f"gzip: {error}") from error
    raise _too_large(limit)


def _decompress_small_gzip(data: bytes | bytearray | memoryview, limit: int) -> bytes:
    room = limit
    rest: bytes | bytearray | memoryview = data
    with _Pieces() as pieces:
        for _ in range(_PARTS_LIMIT):
            member = zlib.decompressobj(31)
            try:
                # One byte above the room distinguishes "exactly full" from "there is more".
                room -= _inflate(member, rest, room + 1, pieces)
            except zlib.error as error:
                raise CompressionError(f"gzip: {error}") from error
            if room < 0:
                raise _too_large(limit)
            if not member.eof:
                raise CompressionError("gzip: the data is cut short")
            rest = member.unused_data
            if not rest:
                return b"".join(pieces)
    raise CompressionError(f"gzip: more than {_PARTS_LIMIT} members")


def _inflate(
    member: "zlib._Decompress",
    data: bytes | bytearray | memoryview,
    most: int,
    pieces: list[bytes],
) -> int:
    """Add the first `most` bytes of a member, or all of it that `data` holds; how many it were."""
    left = most
    rest = data
    while left:
        piece = member.decompress(rest, min(left, _PIECE))
        pieces.append(piece)
        left -= len(piece)
        if member.eof or not piece:
            break
        rest = member.unconsumed_tail
    return most - left


# snappy


def _compress_xerial(data: bytes | bytearray | memoryview) -> bytes:
    import cramjam

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts.append(_INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: bytes | bytearray | memoryview, limit: int) -> bytes:
    view = memoryview(data)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        size = _snappy_size(view, limit, limit)
        return _decompress_snappy_blocks(lambda: iter((view,)), size)
    size = 0
    for block in _xerial_blocks(view):
        size += _snappy_size(block, limit - size, limit)
    return _decompress_snappy_blocks(partial(_xerial_blocks, view), size)


def _xerial_blocks(view: memoryview) -> Iterator[memoryview]:
    position = 0
    while position < len(view):
        if view[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            # Streams may be concatenated, so the header can come again between blocks.
            position += len(_XERIAL_HEADER)
            if position > len(view):
                raise CompressionError("snappy: the stream header is cut short")
            continue
        if position + 4 > len(view):
            raise CompressionError("snappy: a block length is cut short")
        (length,) = _INT32.unpack_from(view, position)
        position += 4
        if length < 0 or length > len(view) - position:
            raise CompressionError(f"snappy: a block of {length} bytes does not fit")
        yield view[position : position + length]
        position += length


def _snappy_size(block: memoryview, room: int, limit: int) -> int:
    """How large a raw block says it will be; look before leaping."""
    import cramjam

    try:
        size: int = cramjam.snappy.decompress_raw_len(block)
    except cramjam.DecompressionError as error:
        raise CompressionError(str(error)) from error
    if size > room:
        raise _too_large(limit)
    return size


def _decompress_snappy_blocks(blocks: Callable[[], Iterator[memoryview]], size: int) -> bytes:
    """Decompress raw blocks that say to hold `size` bytes in all."""
    import cramjam

    def write(output: Any) -> int:
        whole = memoryview(output).cast("B")
        end = 0
        for block in blocks():
            end += cramjam.snappy.decompress_raw_into(block, whole[end:])
        return end

    try:
        if size <= _SMALL:
            return b"".join([bytes(cramjam.snappy.decompress_raw(block)) for block in blocks()])
        return filled(write, size)
    except cramjam.DecompressionError as error:
        raise CompressionError(str(error)) from error


# lz4


def _compress_lz4(data: bytes | bytearray | memoryview, level: int | None) -> bytes:
    fast = level is None or level == _LZ4_DEFAULT_LEVEL
    frame: bytes = lz4.frame.compress(
        data,
        compression_level=0 if fast else min(level or 0, _LZ4_HIGHEST_LEVEL),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        store_size=False,
    )
    return frame


def _decompress_lz4(data: bytes | bytearray | memoryview, limit: int, magic: int) -> bytes:
    _check_lz4_header(data)
    rest = memoryview(_mend_lz4_checksum(data) if magic == 0 else data)
    # Not the library's class for this: it copies what it is given, and what is left each time.
    context = lz4.frame.create_decompression_context()
    # The library allocates all it may return.
    room = min(_PIECE, _LZ4_USUAL_RATIO * len(rest))
    left = limit + 1
    ended = False
    with _Pieces() as pieces:
        while left and not ended:
            try:
                piece, read, ended = lz4.frame.decompress_chunk(context, rest, min(left, room))
            except RuntimeError as error:
                raise CompressionError(f"lz4: {error}") from error
            pieces.append(piece)
            left -= len(piece)
            room = _PIECE
            rest = rest[read:]
            if not (piece or read or ended):
                raise CompressionError("lz4: the frame is cut short")
        if not left:
            raise _too_large(limit)
        if rest:
            raise CompressionError("lz4: bytes follow the frame's end mark")
        return b"".join(pieces)


def _check_lz4_header(frame: bytes | bytearray | memoryview) -> None:
    """Refuse frames the library reads and Kafka's Java reader does not."""
    if len(frame) < 7 or frame[:4] != _LZ4_MAGIC:
        raise CompressionError("lz4: not a frame")
    flags = frame[4]
    if flags >> 6 != 1 or flags & 0x03 or not flags & 0x20:
        raise CompressionError("lz4: only version 1 frames of independent blocks are readable")


def _lz4_descriptor_end(frame: bytes | bytearray | memoryview) -> int:
    """Where the header checksum byte lies: behind flags, block size and an optional length."""
    return 14 if frame[4] & 0x08 else 6


def _spoil_lz4_checksum(frame: bytes) -> bytes:
    """Give a frame the header checksum of format 0: computed over the magic number as well."""
    end = _lz4_descriptor_end(frame)
    return frame[:end] + bytes([_xxh32(frame[:end]) >> 8 & 0xFF]) + frame[end + 1 :]


def _mend_lz4_checksum(frame: bytes | bytearray | memoryview) -> bytes:
    """Give a frame the header checksum the library expects.

    Java ignores the byte altogether for format 0, so any value is replaced.
    """
    mended = bytearray(frame)
    end = _lz4_descriptor_end(mended)
    if end < len(mended):
        mended[end] = _xxh32(bytes(mended[4:end])) >> 8 & 0xFF
    return bytes(mended)


def _xxh32(data: bytes) -> int:
    """The 32-bit xxHash, seed 0, of fewer than 16 bytes: all a frame header ever needs."""
    word = 0xFFFFFFFF
    prime1, prime2, prime3, prime4, prime5 = (
        2654435761,
        2246822519,
        3266489917,
        668265263,
        374761393,
    )
    accumulator = prime5 + len(data)
    whole = len(data) & ~3
    for (lane,) in struct.iter_unpack("<I", data[:whole]):
        accumulator = (accumulator + lane * prime3) & word
        accumulator = ((accumulator << 17 | accumulator >> 15) & word) * prime4 & word
    for byte in data[whole:]:
        accumulator = (accumulator + byte * prime5) & word
        accumulator = ((accumulator << 11 | accumulator >> 21) & word) * prime1 & word
    accumulator = (accumulator ^ accumulator >> 15) * prime2 & word
    accumulator = (accumulator ^ accumulator >> 13) * prime3 & word
    return accumulator ^ accumulator >> 16


# zstd


def _decompress_zstd(data: bytes | bytearray | memoryview, limit: int) -> bytes:
    most = _zstd_upper_bound(memoryview(data))
    decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_LARGEST_WINDOW)
    reader = decoder.stream_reader(data, read_across_frames=True)
    try:
        result = reader.read(min(most, limit) + 1)
    except zstandard.ZstdError as error:
        raise CompressionError(f"zstd: {error}") from error
    if len(result) > limit:
        release(result)
        raise _too_large(limit)
    if len(result) > most:
        raise CompressionError("zstd: a block is larger than a block may be")
    return result


def _zstd_upper_bound(data: memoryview) -> int:
    """How much the frames can hold at most, by their block headers; raises if one is cut short.

    The library's reader does not distinguish the end of a frame from the end of its input, and a
    frame need not say how large its content is. Both follow from the chain of block headers.
    """
    position = 0
    blocks = 0
    for _ in range(_PARTS_LIMIT):
        if data[position : position + 4] != _ZSTD_MAGIC:
            raise CompressionError("zstd: not a frame")
        try:
            parameters = zstandard.get_frame_parameters(data[position:])
            position += zstandard.frame_header_size(data[position:])
        except zstandard.ZstdError as error:
            raise CompressionError(f"zstd: {error}") from error
        position, frame_blocks = _zstd_blocks(data, position)
        blocks += frame_blocks
        position += 4 if parameters.has_checksum else 0
        if position > len(data):
            raise CompressionError("zstd: the frame checksum is cut short")
        if position == len(data):
            return blocks * _ZSTD_BLOCK
    raise CompressionError(f"zstd: more than {_PARTS_LIMIT} frames")


def _zstd_blocks(data: memoryview, position: int) -> tuple[int, int]:
    """Walk the blocks of a frame from the first one's `position`; (position behind, how many)."""
    blocks = 0
    last = False
    while not last:
        header = int.from_bytes(data[position : position + 3], "little")
        last = bool(header & 1)
        is_run = header >> 1 & 3 == 1
        position += 3 + (1 if is_run else header >> 3)
        blocks += 1
        if position > len(data):
            raise CompressionError("zstd: the frame is cut short")
    return position, blocks
