"""A process that has no file descriptor left."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def none_left(*, but: int = 0) -> Iterator[None]:
    """Take every descriptor that this process may have, but for so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1 + but, hard))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(2))
        for _ in range(but):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in taken:
            os.close(each)
