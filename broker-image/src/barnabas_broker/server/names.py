"""Looks up where other brokers are, so that one that is away holds up nobody.

A name that nobody answers for, as of a pod that is being replaced, takes its resolver tens of
seconds, and cannot be given up. The event loop looks names up in a few threads (four with uvloop),
and is asked again with every attempt to connect: an absent broker soon has all of them, and no
broker can be connected to by name any more. Here each name has a thread of its own, one at a time,
whose answer all who ask meanwhile share.
"""

import asyncio
import socket
import threading
from concurrent.futures import Future
from ipaddress import ip_address
from typing import Final

LOOKUPS_MAX: Final = 128
"""Names that are looked up at the same time: more than there are brokers to wait for."""


class Names:
    """Lookups under way, by name. For any event loop; threads end with their lookups."""

    def __init__(self) -> None:
        self._under_way: dict[str, Future[tuple[str, ...]]] = {}
        self._lock = threading.Lock()

    async def addresses(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, those first that are to be tried first; one at least.

        Cancelling gives up the answer only. Raises OSError, UnicodeError for what is no name.
        """
        try:
            return (str(ip_address(host)),)
        except ValueError:
            pass
        answer = asyncio.wrap_future(self._lookup(host))
        # Who gives up does not look at it, nor takes it from the others.
        answer.add_done_callback(lambda it: it.cancelled() or it.exception())
        return await asyncio.shield(answer)

    def _lookup(self, host: str) -> "Future[tuple[str, ...]]":
        with self._lock:
            found = self._under_way.get(host)
            if found is not None:
                return found
            if len(self._under_way) >= LOOKUPS_MAX:
                raise OSError(f"{LOOKUPS_MAX} names are being looked up already")
            found = self._under_way[host] = Future()
        # A daemon: a lookup that hangs must not hold up the end of the process.
        thread = threading.Thread(
            target=self._look_up, args=(host, found), name=f"lookup {host}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            self._forget(host)
            raise OSError(f"no thread to look up {host}: {error}") from error
        return found

    def _look_up(self, host: str, found: "Future[tuple[str, ...]]") -> None:
        try:
            told = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except Exception as error:  # Whoever waits for the answer gets it.
            self._forget(host)
            found.set_exception(error)
        else:
            self._forget(host)
            found.set_result(tuple(dict.fromkeys(str(each[4][0]) for each in told)))

    def _forget(self, host: str) -> None:
        with self._lock:
            del self._under_way[host]
