"""Codecs: what we write, others read; what others write, we read, never beyond a cap."""

import gzip
import random
import struct
import sys
import zlib
from collections.abc import Callable
from typing import Any

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from barnabas_kafka.records.compression import (
    Codec,
    CompressionError,
    DecompressedTooLarge,
    compress,
    decompress,
)
from tests.kafka.records.other_clients import aiokafka_codec, kafka_codec

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"the castle's messenger brings letters nobody answers; " * 4000
PACKED = gzip.compress(TEXT * 2)
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("magic", [0, 1, 2])
@given(data=st.binary(max_size=2000), repeat=st.integers(1, 200))
def test_round_trip(codec: Codec, magic: int, data: bytes, repeat: int) -> None:
    """Whatever goes in comes out, for every codec and format, exactly within the cap."""
    data *= repeat
    packed = compress(codec, data, magic=magic)
    assert decompress(codec, packed, magic=magic, limit=len(data)) == data
    if data:
        with pytest.raises(DecompressedTooLarge):
            decompress(codec, packed, magic=magic, limit=len(data) - 1)


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, (-1, 1, 9)), (Codec.LZ4, (1, 9, 17)), (Codec.ZSTD, (-7, 1, 22))],
)
def test_levels_of_the_topic_settings_are_taken(codec: Codec, levels: tuple[int, ...]) -> None:
    """The ends of each codec's range of levels work, and the highest does not do worse."""
    packed = [compress(codec, TEXT, level) for level in levels]
    assert all(decompress(codec, data, limit=len(TEXT)) == TEXT for data in packed)
    assert len(packed[-1]) <= len(packed[1])


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_taken(codec: Codec, kind: type) -> None:
    """Slices of the receive buffer go in as they are."""
    assert decompress(codec, kind(compress(codec, kind(TEXT))), limit=len(TEXT)) == TEXT


@pytest.mark.parametrize("codec", COMPRESSED)
def test_every_truncation_is_refused(codec: Codec) -> None:
    """No shorter part of compressed data passes for the whole."""
    data = bytes(range(256)) * 3
    packed = compress(codec, data)
    for end in range(len(packed)):
        # A xerial stream has no end mark: cut between blocks it is a shorter, valid stream.
        if codec is Codec.SNAPPY and end == len(XERIAL):
            continue
        with pytest.raises(CompressionError):
            decompress(codec, packed[:end], limit=len(data))


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_bytes_behind_the_end_are_refused(codec: Codec) -> None:
    """A frame followed by garbage is not what a producer writes."""
    with pytest.raises(CompressionError):
        decompress(codec, compress(codec, TEXT) + b"x", limit=len(TEXT))


@pytest.mark.parametrize("codec", COMPRESSED)
@given(data=st.binary(max_size=300))
def test_garbage_is_refused_not_misread(codec: Codec, data: bytes) -> None:
    """Random bytes end in our own error or within the cap, never in the library's exception."""
    try:
        result = decompress(codec, data, limit=10_000)
    except CompressionError:
        return
    assert len(result) <= 10_000


@pytest.mark.parametrize("codec", COMPRESSED)
@given(where=st.integers(0, 10_000), value=st.integers(0, 255))
def test_damage_is_refused_or_bounded(codec: Codec, where: int, value: int) -> None:
    """One changed byte anywhere raises our error or decompresses within the cap."""
    packed = bytearray(compress(codec, TEXT[:5000]))
    packed[where % len(packed)] = value
    try:
        result = decompress(codec, packed, limit=20_000)
    except CompressionError:
        return
    assert len(result) <= 20_000


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_refused(codec: Codec) -> None:
    """Sixty-four megabytes of zeros in little space stop at the cap of one."""
    bomb = compress(codec, bytes(64 << 20))
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, bomb, limit=1 << 20)


def test_a_zstd_frame_that_lies_about_its_size_is_refused() -> None:
    """A frame header claiming terabytes leads to an error, not to an allocation."""
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(70_000)))
    assert zstandard.frame_content_size(bytes(frame)) == 70_000
    start = frame.index((70_000).to_bytes(4, "little"))
    frame[start : start + 4] = (0xF0000000).to_bytes(4, "little")
    with pytest.raises(CompressionError):
        decompress(Codec.ZSTD, frame, limit=1 << 20)


def test_a_snappy_block_that_lies_about_its_size_is_refused() -> None:
    """The length a raw block states is compared with the cap before anything is allocated."""
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x" * 20, limit=1 << 20)


def test_streamed_zstd_without_a_content_size_is_read() -> None:
    """Java writes frames that do not say how large they are."""
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    packed = b"".join(packer.compress(TEXT[i : i + 1000]) for i in range(0, len(TEXT), 1000))
    packed += packer.flush()
    assert decompress(Codec.ZSTD, packed, limit=len(TEXT)) == TEXT


def test_zstd_checksums_count() -> None:
    """A frame with a content checksum is read, and refused where the checksum is cut off."""
    packed = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    assert decompress(Codec.ZSTD, packed, limit=len(TEXT)) == TEXT
    with pytest.raises(CompressionError):
        decompress(Codec.ZSTD, packed[:-2], limit=len(TEXT))


def test_gzip_members_and_zstd_frames_may_follow_each_other() -> None:
    """Both formats allow concatenation, and the cap is for the sum."""
    for codec, packed in (
        (Codec.GZIP, gzip.compress(b"one") + gzip.compress(b"two")),
        (Codec.ZSTD, zstandard.compress(b"one") + zstandard.compress(b"two")),
    ):
        assert decompress(codec, packed, limit=6) == b"onetwo"
        with pytest.raises(DecompressedTooLarge):
            decompress(codec, packed, limit=5)


def test_thousands_of_members_or_frames_are_refused() -> None:
    """Each costs time whatever it holds, and an attacker could send forty thousand in a batch."""
    for codec, part in ((Codec.GZIP, gzip.compress(b"")), (Codec.ZSTD, zstandard.compress(b""))):
        assert decompress(codec, part * 64, limit=10) == b""
        with pytest.raises(CompressionError, match="more than 64"):
            decompress(codec, part * 65, limit=10)


def test_zstd_frames_that_hold_no_data_are_refused() -> None:
    """Skippable frames are legal zstd, but their length is not where a data frame's blocks are."""
    skippable = struct.pack("<II", 0x184D2A50, 4) + b"skip"
    for packed in (skippable, skippable + zstandard.compress(b"x")):
        with pytest.raises(CompressionError, match="not a frame"):
            decompress(Codec.ZSTD, packed, limit=10)


def test_raw_snappy_and_concatenated_streams_are_read() -> None:
    """Some clients write one raw block; snappy-java allows streams one after another."""
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(Codec.SNAPPY, raw, limit=len(TEXT)) == TEXT
    twice = compress(Codec.SNAPPY, b"one") + compress(Codec.SNAPPY, b"two")
    assert decompress(Codec.SNAPPY, twice, limit=6) == b"onetwo"


@pytest.mark.parametrize("size", [(256 << 10) - 1, 256 << 10, (256 << 10) + 1, (2 << 20) + 5])
def test_large_blocks_of_snappy_are_whole(size: int) -> None:
    """They are decompressed in place; damage is still noticed, and so is what is too large."""
    data = (random.Random(size).randbytes(5000) * (size // 5000 + 1))[:size]
    raw = bytes(cramjam.snappy.compress_raw(data))
    assert decompress(Codec.SNAPPY, raw, limit=size) == data
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.SNAPPY, raw, limit=size - 1)
    with pytest.raises(CompressionError):
        decompress(Codec.SNAPPY, raw[:-1], limit=size)


def test_snappy_is_written_in_javas_stream() -> None:
    """Blocks hold at most 32 KiB and follow the sixteen-byte header."""
    packed = compress(Codec.SNAPPY, bytes(40_000))
    assert packed[:16] == XERIAL
    (first,) = struct.unpack_from(">i", packed, 16)
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first]) == 32 * 1024


@pytest.mark.parametrize("block", [b"\xff\xff\xff\xff", b"\0\0\0\x09short", b"\0\0"])
def test_broken_snappy_streams_are_refused(block: bytes) -> None:
    """Negative, overlong and cut block lengths are errors."""
    with pytest.raises(CompressionError):
        decompress(Codec.SNAPPY, XERIAL + block, limit=100)


def test_lz4_frames_java_cannot_read_are_refused() -> None:
    """Linked blocks pass the library, but a Java consumer of the partition would fail on them."""
    linked = lz4.frame.compress(TEXT, block_linked=True)
    with pytest.raises(CompressionError, match="independent"):
        decompress(Codec.LZ4, linked, limit=len(TEXT))


def test_lz4_options_java_knows_are_read() -> None:
    """Content size, content checksum and block checksum are all within Kafka's reader."""
    packed = lz4.frame.compress(
        TEXT, block_linked=False, content_checksum=True, block_checksum=True, store_size=True
    )
    assert decompress(Codec.LZ4, packed, limit=len(TEXT)) == TEXT


@pytest.mark.parametrize("ratio", [1, 7, 8, 9, 200])
def test_lz4_of_any_ratio_is_read_whole(ratio: int) -> None:
    """Content that is more than usually compressible is read like any other, cap and all."""
    noise = random.Random(ratio).randbytes(4000)
    content = noise + bytes(len(noise) * (ratio - 1))
    packed = compress(Codec.LZ4, content)
    assert decompress(Codec.LZ4, packed, limit=len(content)) == content
    assert decompress(Codec.LZ4, packed) == content
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.LZ4, packed, limit=len(content) - 1)
    for broken in (packed[:-1], packed[:-5], packed + b"\0"):
        with pytest.raises(CompressionError):
            decompress(Codec.LZ4, broken)


def test_lz4_in_format_0_has_the_old_header_checksum() -> None:
    """KIP-57: magic 0 frames carry a wrong checksum on purpose; readers take both there."""
    old, new = (compress(Codec.LZ4, TEXT, magic=magic) for magic in (0, 1))
    assert old[:6] == new[:6]
    assert old[6] != new[6]
    assert old[7:] == new[7:]
    assert decompress(Codec.LZ4, old, magic=0, limit=len(TEXT)) == TEXT
    assert decompress(Codec.LZ4, new, magic=0, limit=len(TEXT)) == TEXT
    with pytest.raises(CompressionError):
        decompress(Codec.LZ4, old, magic=1, limit=len(TEXT))


def test_lz4_in_format_0_with_a_content_size_is_read() -> None:
    """The repaired checksum covers the eight bytes of the optional length too."""
    packed = bytearray(lz4.frame.compress(TEXT, block_linked=False, store_size=True))
    packed[14] ^= 0xFF
    assert decompress(Codec.LZ4, packed, magic=0, limit=len(TEXT)) == TEXT


def test_codecs_of_other_clients_agree() -> None:
    """kafka-python and aiokafka read what we write, and the other way round."""
    pairs = [
        (Codec.GZIP, kafka_codec.gzip_encode, kafka_codec.gzip_decode),
        (Codec.LZ4, kafka_codec.lz4_encode, kafka_codec.lz4_decode),
        (Codec.ZSTD, kafka_codec.zstd_encode, kafka_codec.zstd_decode),
        (Codec.GZIP, aiokafka_codec.gzip_encode, aiokafka_codec.gzip_decode),
        (Codec.SNAPPY, aiokafka_codec.snappy_encode, aiokafka_codec.snappy_decode),
        (Codec.LZ4, aiokafka_codec.lz4_encode, aiokafka_codec.lz4_decode),
        (Codec.ZSTD, aiokafka_codec.zstd_encode, aiokafka_codec.zstd_decode),
    ]
    for codec, encode, decode in pairs:
        assert decompress(codec, bytes(encode(TEXT)), limit=len(TEXT)) == TEXT
        assert bytes(decode(compress(codec, TEXT))) == TEXT


def test_no_codec_is_capped_as_well() -> None:
    """Uncompressed data passes through, within the same cap."""
    assert decompress(Codec.NONE, memoryview(b"abc"), limit=3) == b"abc"
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.NONE, b"abcd", limit=3)


@pytest.mark.parametrize(
    "size", [256 << 10, (256 << 10) + 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 5]
)
def test_decompressed_data_is_complete(size: int) -> None:
    """Around a piece and beyond it, with exactly the room it takes; a cut is still noticed."""
    data = random.Random(size).randbytes(5000) * (size // 5000 + 1)
    data = data[:size]
    packed = compress(Codec.GZIP, data)
    assert decompress(Codec.GZIP, packed, limit=size) == data
    assert decompress(Codec.GZIP, packed + packed, limit=2 * size) == data * 2
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.GZIP, packed, limit=size - 1)
    with pytest.raises(CompressionError, match=r"cut short|end of file"):
        decompress(Codec.GZIP, packed[:-1], limit=size)


def raw_snappy(data: bytes) -> bytes:
    """One block without a stream, as some clients write it."""
    return bytes(cramjam.snappy.compress_raw(data))


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        (Codec.GZIP, gzip.compress),
        (Codec.GZIP, lambda data: gzip.compress(data) + gzip.compress(b"")),
        (Codec.SNAPPY, raw_snappy),
    ],
    ids=["gzip", "two members", "snappy"],
)
def test_a_section_ten_times_larger_takes_no_more_calls(
    codec: Codec, pack: Callable[[bytes], bytes]
) -> None:
    """Each call of a library has to get the interpreter back from the event loop when it returns.

    In pieces of 64 KiB that would be a thousand times for a section of 60 MiB.
    """

    def calls(data: bytes) -> int:
        packed = pack(data)
        called: list[str] = []

        def note(_frame: object, event: str, function: Any) -> None:
            if event == "c_call" and function.__name__.startswith("decompress"):
                called.append(function.__name__)

        sys.setprofile(note)
        try:
            whole = decompress(codec, packed)
        finally:
            sys.setprofile(None)
        assert whole == data
        return len(called)

    assert calls(TEXT * 100) <= calls(TEXT * 10)


def inflated_by_zlib(packed: bytes) -> bytes | None:
    """What Python's own library makes of it; None where it refuses it."""
    found, rest = [], packed
    while rest:
        member = zlib.decompressobj(31)
        try:
            found.append(member.decompress(rest))
        except zlib.error:
            return None
        if not member.eof:
            return None
        rest = member.unused_data
    return b"".join(found)


@given(
    members=st.integers(1, 3),
    changes=st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 255)), max_size=2),
    cut=st.sampled_from([None, None, -1, -4, -9, 12]),
    behind=st.sampled_from([b"", b"", b"\0", b"garbage", gzip.compress(b"more")]),
)
def test_large_gzip_is_judged_as_zlib_judges_it(
    members: int, changes: list[tuple[int, int]], cut: int | None, behind: bytes
) -> None:
    """Consumers use zlib: what it refuses is not stored, whoever decompresses it here."""
    packed = bytearray(PACKED * members)
    for position, value in changes:
        packed[position] = value
    data = bytes(packed[:cut]) + behind
    expected = inflated_by_zlib(data)
    try:
        found = decompress(Codec.GZIP, data, limit=8 << 20)
    except CompressionError:
        assert expected is None
    else:
        assert found == expected


@pytest.mark.parametrize("claim", [0, 100, 300 << 10, 1 << 20, (1 << 20) + 1, 0xFFFFFFFF])
def test_large_gzip_that_lies_about_its_size_is_refused(claim: int) -> None:
    """Whatever the last four bytes say; they are only where looking begins."""
    packed = gzip.compress(bytes(1 << 20))
    lying = packed[:-4] + claim.to_bytes(4, "little")
    if claim == 1 << 20:
        assert decompress(Codec.GZIP, lying) == bytes(1 << 20)
        return
    with pytest.raises(CompressionError):
        decompress(Codec.GZIP, lying)
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.GZIP, lying, limit=(1 << 20) - 1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("fault", ["too large", "cut short", "two of them"])
def test_a_refusal_keeps_nothing_of_what_was_inflated(codec: Codec, fault: str) -> None:
    """Who answers with the error would have to free it all at once."""
    packed = compress(codec, bytes(4 << 20))
    limit = (3 << 20) if fault == "too large" else (16 << 20)
    if fault == "cut short":
        packed = packed[:-3]
    elif fault == "two of them":
        packed += packed[:-3]
    with pytest.raises(CompressionError) as refused:
        decompress(codec, packed, limit=limit)
    frames = [entry.frame.f_locals for entry in refused.traceback[1:]]
    lists = [value for names in frames for value in names.values() if isinstance(value, list)]
    kept = [
        value
        for names in frames
        for value in names.values()
        if isinstance(value, bytes) and value is not packed
    ]
    assert lists == [[]] * len(lists)
    assert sum(map(len, kept)) <= 128 << 10
