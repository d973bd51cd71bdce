"""DNS lookups of hosts: a lookup that hangs does not delay lookups of other hosts.

Resolving the host of a pod that is being replaced can take tens of seconds and cannot be cancelled.
The event loop resolves hosts in a small thread pool (four threads with uvloop), and every attempt
to connect starts another lookup: an absent host soon occupies the pool, and connections to all
other hosts time out. Here each host has at most one lookup in progress, in a thread of its own;
concurrent callers share its result.
"""

import asyncio
import socket
import threading
import time
from asyncio.staggered import staggered_race
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from ipaddress import ip_address
from typing import Final

LOOKUPS_MAX: Final = 128
"""Concurrent lookups; more than a cluster has unreachable brokers."""

HAPPY_EYEBALLS_S: Final = 0.25
"""RFC 8305: after this time the next address of the name is tried, too."""


class HostResolver:
    """Resolves hosts for any number of event loops. A thread ends with its lookup."""

    def __init__(self, lookups_max: int = LOOKUPS_MAX) -> None:
        self._lookups_max = lookups_max
        self._under_way: dict[str, Future[tuple[str, ...]]] = {}
        self._lock = threading.Lock()

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host, at least one, in the resolver's order.

        Cancelling does not stop the lookup. Raises OSError, or UnicodeError for an invalid host.
        """
        try:
            return (str(ip_address(host)),)
        except ValueError:
            pass
        answer = asyncio.wrap_future(self._lookup(host))
        # Retrieved even if this caller is cancelled; the lookup itself is shared.
        answer.add_done_callback(lambda it: it.cancelled() or it.exception())
        return await asyncio.shield(answer)

    def resolve_blocking(self, host: str, timeout_s: float) -> tuple[str, ...]:
        """The same in a thread that may wait. Raises TimeoutError, too, which is an OSError."""
        try:
            return (str(ip_address(host)),)
        except ValueError:
            pass
        try:
            return self._lookup(host).result(timeout_s)
        except TimeoutError:
            raise TimeoutError(f"resolving {host} took longer than {timeout_s:.3g} s") from None

    def connect_blocking(self, host: str, port: int, timeout_s: float) -> socket.socket:
        """A connection in that time, lookup included. Raises OSError, for an invalid host too.

        Each address has its share of the time, so that one that drops packets leaves the next some.
        """
        until_s = time.monotonic() + timeout_s
        try:
            addresses = self.resolve_blocking(host, timeout_s)
        except ValueError as error:  # Most are UnicodeErrors.
            raise OSError(f"{host} is not a valid host name") from error
        failed = OSError(f"{host} has no address")
        for untried, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(f"connecting to {host} took longer than {timeout_s:.3g} s")
            try:
                return socket.create_connection((address, port), left_s / untried)
            except OSError as error:
                failed = error
        raise failed

    def _lookup(self, host: str) -> "Future[tuple[str, ...]]":
        with self._lock:
            found = self._under_way.get(host)
            if found is not None:
                return found
            if len(self._under_way) >= self._lookups_max:
                raise OSError(f"{self._lookups_max} host lookups are already in progress")
            found = self._under_way[host] = Future()
        # A daemon thread: a lookup that hangs must not delay the exit of the process.
        thread = threading.Thread(
            target=self._look_up, args=(host, found), name=f"resolve {host}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            self._forget(host)
            raise OSError(f"cannot start a thread to resolve {host}: {error}") from error
        return found

    def _look_up(self, host: str, found: "Future[tuple[str, ...]]") -> None:
        try:
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except Exception as error:  # Raised in every caller.
            self._forget(host)
            found.set_exception(error)
        else:
            self._forget(host)
            found.set_result(tuple(dict.fromkeys(str(each[4][0]) for each in addresses)))

    def _forget(self, host: str) -> None:
        with self._lock:
            del self._under_way[host]


async def connect_to_any(addresses: Sequence[str], port: int) -> socket.socket:
    """A connection to the first of the addresses that accepts; the caller sets the deadline.

    Raises the OSError of the last one.
    """
    connected: list[socket.socket] = []
    attempts = [partial(_connect, address, port, connected) for address in addresses]
    try:
        _, _, errors = await staggered_race(attempts, HAPPY_EYEBALLS_S)
    except BaseException:  # The caller has given up, just when there was one.
        for each in connected:
            each.close()
        raise
    for each in connected:
        return each
    raise errors[-1] or AssertionError("an attempt that failed has an error")


async def _connect(address: str, port: int, connected: list[socket.socket]) -> None:
    """Connect to one address; the connection is put into `connected`. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    attempt = socket.socket(family, socket.SOCK_STREAM)
    try:
        attempt.setblocking(False)
        await asyncio.get_running_loop().sock_connect(attempt, (address, port))
        attempt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        attempt.close()
        raise
    connected.append(attempt)
