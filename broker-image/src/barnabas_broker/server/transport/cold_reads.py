"""Brings what has left the page cache back into it, so that sending it never waits for a disk.

sendfile and pread of bytes that are not in memory stop the thread that calls them, and with the
event loop every client of the broker. Whether bytes are in memory is asked of the kernel by
reading single ones with RWF_NOWAIT; if they are not, a thread reads them first.

Not every file system knows RWF_NOWAIT. On those that do not, everything counts as being in memory,
and a cold read blocks the loop.
"""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from barnabas_broker.log.files import DataFile

PROBE_STEP: Final = 256 << 10
"""One byte of so many is asked for: neighbours are brought in and dropped together, and what is
missed in between is one read of the disk."""

WINDOW_BYTES: Final = 1 << 20
"""What is brought in before something of it is sent."""

AHEAD_BYTES: Final = 4 << 20
"""How far ahead the disk is asked to read."""

THREADS: Final = ThreadPoolExecutor(4, thread_name_prefix="cold-read")
"""For the process, as the disks are. None is started before the first cold read, and each
connection has at most one read in the queue."""

_COLD: Final = frozenset({errno.EAGAIN, errno.EWOULDBLOCK})
_UNKNOWN: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS})


def in_memory(fd: int, start: int, end: int) -> bool:
    """Whether the bytes from `start` to `end` can be read without waiting, by samples."""
    byte = bytearray(1)
    try:
        for position in range(start, end, PROBE_STEP):
            os.preadv(fd, (byte,), position, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno in _COLD:
            return False
        if error.errno in _UNKNOWN:
            return True
        raise
    return True


def read_in_memory(file: DataFile, position: int, length: int) -> bytes | bytearray | None:
    """What `file` has there, or None where that would have to wait for the disk."""
    data = bytearray(length)
    try:
        got = os.preadv(file.fd, (data,), position, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno in _COLD:
            return None
        if error.errno in _UNKNOWN:
            return file.read(position, length)
        raise
    return data if got == length else None


def bring_in(file: DataFile, start: int, end: int, limit: int) -> None:
    """Read the bytes from `start` to `end`, in a thread; those up to `limit` may be wanted next.

    Raises OSError, also where the file ends sooner.
    """
    os.posix_fadvise(file.fd, start, min(limit - start, AHEAD_BYTES), os.POSIX_FADV_WILLNEED)
    scratch = memoryview(bytearray(min(end - start, PROBE_STEP)))
    while start < end:
        got = os.preadv(file.fd, (scratch[: end - start],), start)
        if not got:
            raise OSError(
                f"{file.path} ends at {start}, below the end of a response whose header was sent"
            )
        start += got
