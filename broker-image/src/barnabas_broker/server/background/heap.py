"""The heap of the C library: returns unused memory to the system.

Whatever takes more than 512 bytes, and what libraries allocate, comes from `malloc`. glibc gives
memory back from the end of its heap only, so that one small thing allocated behind the tables of a
thousand partitions keeps all their memory after they are deleted.
"""

import ctypes
from collections.abc import Callable
from functools import cache


def trim() -> None:
    """Give back every page within the heap that holds nothing; does nothing but with glibc.

    To be called in a thread: it takes some tenths of a millisecond for a megabyte that goes back,
    and runs without the interpreter's lock. Threads that allocate meanwhile may have to wait for
    it.
    """
    malloc_trim = _malloc_trim()
    if malloc_trim is not None:
        malloc_trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim.argtypes = [ctypes.c_size_t]
    return malloc_trim
