"""Finds clients that left while they were not read from.

A connection is not read from while its request waits for an answer, so its end goes unnoticed: a
long poll of days would outlive its client by days. Asking the kernel about every socket takes one
system call a second.
"""

import array
import fcntl
import select
import termios
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar


class Parked(Protocol):
    """A connection."""

    @property
    def parked_fd(self) -> int | None:
        """Its descriptor while a request of it waits for an answer, else None."""
        ...


P = TypeVar("P", bound=Parked)


def departed(connections: Iterable[P]) -> Iterator[tuple[P, int]]:
    """Those whose clients have closed their end, with how many bytes are still to be read.

    A producer that wants no answers may close behind its last request.
    """
    parked = {fd: it for it in connections if (fd := it.parked_fd) is not None}
    if not parked:
        return
    poll = select.poll()
    for fd in parked:
        poll.register(fd, select.POLLRDHUP)
    for fd, _ in poll.poll(0):
        yield parked[fd], _unread_bytes(fd)


def _unread_bytes(fd: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]
