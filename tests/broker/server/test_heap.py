"""Giving the heap's unused pages back."""

import mmap
from pathlib import Path

from barnabas_broker.server import heap

MIB = 1 << 20
MEMORY = Path("/proc/self/statm")


def resident_bytes() -> int:
    """What of this process is in memory."""
    return int(MEMORY.read_text().split()[1]) * mmap.PAGESIZE


def test_memory_in_front_of_what_lives_is_given_back() -> None:
    """The last of many allocations would keep all the others' memory."""
    blocks = [bytearray(64 << 10) for _ in range(1024)]
    last = blocks.pop()
    before = resident_bytes()
    del blocks
    heap.trim()
    assert before - resident_bytes() > 48 * MIB
    assert last == bytes(64 << 10)
