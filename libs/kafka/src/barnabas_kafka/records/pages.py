"""Memory of large decompressed records, filled and given back beside the event loop.

Python makes, copies and frees an object while no other thread may run. For tens of megabytes the
kernel takes 5 to 15 ms to take the pages back, and a broker that is sent such batches answers no
client meanwhile. In pieces it is no better: a thread that needs the interpreter's lock a thousand
times has the event loop wait for it, and for being woken up again, as often. Codecs that write into
memory they are given need the lock when they begin and when they end, and what is called through
`ctypes` runs without it.
"""

import ctypes
import mmap
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final

LARGE_BYTES: Final = 2 << 20
"""Less is freed in less time than this takes."""

AT_ONCE_BYTES: Final = 1 << 20
"""Other threads that allocate meanwhile wait for the kernel's lock on the process's memory."""

_CPYTHON: Final = sys.implementation.name == "cpython"


def filled(write: Callable[[Any], int], most: int) -> bytes:
    """The bytes that `write` writes into a buffer of `most` bytes; it returns how many they are.

    Where they fill the buffer there is no other copy of them, and else only until they are
    returned. What `write` raises is raised, and what it wrote has been given back then. `write`
    may not keep the buffer. `most` takes address space, and memory only as far as it is written.
    """
    if not _CPYTHON:
        anywhere = bytearray(most)
        return bytes(memoryview(anywhere)[: write(anywhere)])
    whole = _blank(most)
    try:
        written = write((ctypes.c_char * most).from_address(_address(whole)))
    except BaseException:
        release(whole)
        raise
    if written == most:
        return whole
    part = _blank(written)
    _memmove()(_address(part), _address(whole), written)
    release(whole, written)
    return part


def _blank(size: int) -> bytes:
    """Bytes with no content yet, to be filled by the caller, as extensions do."""
    blank: bytes = _maker()(None, size)
    return blank


def _address(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def release(data: bytes, size: int | None = None) -> None:
    """Give back the pages of `data`, which must not be read any more: it may hold zeros now.

    Of its first `size` bytes where that is given, because the others were never written. The caller
    is the last that knows `data`, and drops it next. Does nothing to small data, nor where objects
    may move or pages cannot be given back.
    """
    size = len(data) if size is None else size
    if size < LARGE_BYTES:
        return
    madvise = _madvise()
    if madvise is None:
        return
    begin = _address(data)
    # Only pages that lie within: others may be on the first and the last.
    first = -begin % mmap.PAGESIZE
    end = begin + (size - first) // mmap.PAGESIZE * mmap.PAGESIZE + first
    for address in range(begin + first, end, AT_ONCE_BYTES):
        madvise(address, min(AT_ONCE_BYTES, end - address), mmap.MADV_DONTNEED)


@cache
def _maker() -> Any:
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)
    return prototype(("PyBytes_FromStringAndSize", ctypes.pythonapi))


@cache
def _madvise() -> Any:
    if not _CPYTHON or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return madvise


@cache
def _memmove() -> Any:
    memmove = ctypes.CDLL(None).memmove
    memmove.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    memmove.restype = ctypes.c_void_p
    return memmove
