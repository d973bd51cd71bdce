"""Giving the memory of large bytes back before they are dropped."""

import mmap
from pathlib import Path

import pytest

from barnabas_kafka.records import pages
from barnabas_kafka.records.compression import Codec, DecompressedTooLarge, compress, decompress

MIB = 1 << 20
MEMORY = Path("/proc/self/statm")


def resident_bytes() -> int:
    """What of this process is in memory."""
    return int(MEMORY.read_text().split()[1]) * mmap.PAGESIZE


def test_large_bytes_give_their_pages_back() -> None:
    """The object is still there, its memory is not."""
    data = b"x" * (64 * MIB)
    before = resident_bytes()
    pages.release(data)
    assert before - resident_bytes() > 60 * MIB
    assert len(data) == 64 * MIB


def test_neighbours_are_left_alone() -> None:
    """What else lies on the first and the last page stays as it was."""
    data = b"y" * (3 * MIB + 5)
    others = [bytes([n]) * 1000 for n in range(200)]
    pages.release(data)
    assert all(other == bytes([n]) * 1000 for n, other in enumerate(others))


def test_small_bytes_are_as_they_were() -> None:
    """They may be anybody's: Python shares them."""
    data = b"z" * (pages.LARGE_BYTES - 1)
    pages.release(data)
    assert data == b"z" * (pages.LARGE_BYTES - 1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_codecs_know_no_zeros_of_others(codec: Codec) -> None:
    """A refused section takes nothing with it that is read later."""
    packed = compress(codec, b"k" * (8 * MIB))
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, limit=6 * MIB)
    assert decompress(codec, packed) == b"k" * (8 * MIB)
