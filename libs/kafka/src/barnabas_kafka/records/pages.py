"""Memory of large decompressed records, given back beside the event loop instead of before it.

Python frees an object while no other thread may run. For tens of megabytes the kernel takes 5 to
15 ms to take the pages back, and a broker that is sent such batches answers nobody meanwhile. What
is called through `ctypes` runs without the interpreter's lock.
"""

import ctypes
import mmap
import sys
from functools import cache
from typing import Any, Final

LARGE_BYTES: Final = 2 << 20
"""Less is freed in less time than this takes."""

AT_ONCE_BYTES: Final = 256 << 10
"""Whoever allocates meanwhile waits for the kernel's lock on the process's memory."""


def release(data: bytes) -> None:
    """Give back the pages of `data`, which nobody may look at any more: it may hold zeros now.

    The caller is the last that knows `data`, and drops it next. Does nothing to small data, nor
    where objects may move or pages cannot be given back.
    """
    if len(data) < LARGE_BYTES:
        return
    madvise = _madvise()
    if madvise is None:
        return
    begin = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
    # Only pages that lie within: others may be on the first and the last.
    first = -begin % mmap.PAGESIZE
    end = begin + (len(data) - first) // mmap.PAGESIZE * mmap.PAGESIZE + first
    for address in range(begin + first, end, AT_ONCE_BYTES):
        madvise(address, min(AT_ONCE_BYTES, end - address), mmap.MADV_DONTNEED)


@cache
def _madvise() -> Any:
    if sys.implementation.name != "cpython" or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return madvise
