"""Resumes the queues of slow peers when their sockets become writable.

An event loop lets no other code watch a descriptor that one of its transports owns, and to have it
watch a duplicate for one wait costs it eight system calls. So these sockets are watched by an epoll
of their own, of which the loop watches the one descriptor: a wait costs one call to begin and,
shared by all that become writable together, one to end.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Final

EVENTS_AT_ONCE: Final = 8
"""Sockets that are served before the loop goes on with others; the rest follow later."""

# One-shot: each wait registers again, and fires at once if the socket is writable already.
_EVENTS: Final = select.EPOLLOUT | select.EPOLLONESHOT


class WriteReadiness:
    """Waits for sockets to be writable, on one event loop; made and closed in it.

    `together` is how many became writable at once the last time, at least 1: they share a budget.
    """

    __slots__ = ("_closed", "_epoll", "_loop", "_waiting", "together")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._epoll: select.epoll | None = None  # Not before the first wait.
        self._waiting: dict[int, Callable[[], None]] = {}
        self._closed = False
        self.together = 1

    def wait(self, fd: int, callback: Callable[[], None]) -> None:
        """Have `callback` called from the loop, once, when the socket takes bytes or is broken.

        A socket that was waited for is watched until `forget`, which comes before it is closed.
        """
        if self._closed:
            return  # The broker is stopping, and its connections are about to end.
        if self._epoll is None:
            self._epoll = select.epoll()
            self._loop.add_reader(self._epoll.fileno(), self._dispatch)
        if fd in self._waiting:
            self._epoll.modify(fd, _EVENTS)
        else:
            self._epoll.register(fd, _EVENTS)
        self._waiting[fd] = callback

    def forget(self, fd: int) -> None:
        """Watch a socket no more; one that was never waited for is fine."""
        if self._waiting.pop(fd, None) is not None and self._epoll is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """Drop all waits."""
        self._closed = True
        self._waiting.clear()
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

    def _dispatch(self) -> None:
        if self._epoll is None:
            return
        events = self._epoll.poll(0, EVENTS_AT_ONCE)
        self.together = max(1, len(events))
        for fd, _ in events:
            callback = self._waiting.get(fd)
            if callback is not None:  # An earlier callback may have ended this one's connection.
                callback()
