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


@pytest.mark.parametrize("size", [0, 1, 100, MIB, 3 * MIB + 1, 4 * MIB])
def test_pages_hold_exactly_the_written_bytes(size: int) -> None:
    """Nothing of a larger buffer comes with it, whether the system or Python had it before."""

    def write(buffer: bytearray) -> int:
        memoryview(buffer).cast("B")[:size] = b"w" * size
        return size

    assert pages.filled(write, 4 * MIB) == b"w" * size


def test_a_buffer_that_was_not_filled_is_given_back() -> None:
    """Also where writing failed, and somebody keeps the error."""

    def write(buffer: bytearray) -> int:
        memoryview(buffer).cast("B")[:] = b"w" * len(buffer)
        raise ValueError("no such codec")

    before = resident_bytes()
    with pytest.raises(ValueError, match="codec") as refused:
        pages.filled(write, 64 * MIB)
    assert resident_bytes() - before < 4 * MIB
    assert refused.traceback


def test_room_that_is_not_written_takes_no_memory() -> None:
    """A limit of what may come is not what does."""
    resident: list[int] = []

    def write(buffer: bytearray) -> int:
        resident.append(resident_bytes())
        return 1

    before = resident_bytes()
    pages.filled(write, 256 * MIB)
    assert resident[0] - before < 4 * MIB
