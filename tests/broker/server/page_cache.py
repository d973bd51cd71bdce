"""What the kernel holds of a file in memory: emptied for a test, and looked at without changing it.

A read with RWF_NOWAIT is no such look: where it finds nothing, newer kernels start to read ahead,
so that the same question gets another answer a moment later. mincore asks without effect.
"""

import ctypes
import mmap
import os

from barnabas_broker.log.files import DataFile

EVICTIONS_MAX = 1000
"""Pages under way to or from the disk stay; each try waits for those that are written."""

_mincore = ctypes.CDLL(None, use_errno=True).mincore
_mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def resident_pages(fd: int) -> list[bool]:
    """For every page of a file that is not empty, whether it is in memory."""
    with mmap.mmap(fd, 0) as mapped:
        pages = -(-len(mapped) // mmap.PAGESIZE)
        states = (ctypes.c_ubyte * pages)()
        start = ctypes.c_char.from_buffer(mapped)
        try:
            if _mincore(ctypes.addressof(start), len(mapped), states):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        finally:
            del start  # Or the mapping could not be closed.
    return [bool(state & 1) for state in states]


def in_memory(fd: int, start: int, end: int) -> bool:
    """As `cold_reads.in_memory`, of every page and without effect."""
    last = -(-end // mmap.PAGESIZE)
    return all(resident_pages(fd)[start // mmap.PAGESIZE : last])


def read_in_memory(file: DataFile, position: int, length: int) -> bytes | None:
    """As `cold_reads.read_in_memory`, without effect where it reads nothing."""
    if in_memory(file.fd, position, position + length):
        return file.read(position, length)
    return None


def evict(file: DataFile) -> None:
    """Have the kernel forget what it holds of a file, all of it."""
    for _ in range(EVICTIONS_MAX):
        os.fsync(file.fd)
        os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if not any(resident_pages(file.fd)):
            return
    raise AssertionError(f"the kernel keeps {file.path} in memory; is it on a disk?")
