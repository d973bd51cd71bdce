"""The admin clients of clusters: kept between passes, closed when there are too many.

A client keeps its connections, so one that is dropped has to be closed. One in use stays open.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Generic, Protocol, TypeVar


class Client(Protocol):
    """What is kept."""

    def close(self) -> None:
        """Close the connections."""
        ...


K = TypeVar("K")
C = TypeVar("C", bound=Client)


class Clients(Generic[K, C]):
    """Thread-safe; `connect` makes the client of a key, and may raise."""

    def __init__(self, connect: Callable[[K], C], limit: int) -> None:
        """More than `limit` clients are kept only while passes use them."""
        self._connect = connect
        self._limit = limit
        self._lock = threading.Lock()
        # The longest unused first, each with the number of passes that use it.
        self._kept: OrderedDict[K, tuple[C, int]] = OrderedDict()

    @contextmanager
    def lease(self) -> Iterator[Callable[[K], C]]:
        """What gives a pass its clients, which stay open until the block ends."""
        taken: dict[K, C] = {}

        def client_of(key: K) -> C:
            if key not in taken:
                taken[key] = self._take(key)
            return taken[key]

        try:
            yield client_of
        finally:
            with ExitStack() as closing:
                # Each one, also after one that cannot be closed in time.
                for client in self._give_back(taken):
                    closing.callback(client.close)

    def _take(self, key: K) -> C:
        with self._lock:
            client, users = self._kept.get(key) or (self._connect(key), 0)
            self._kept[key] = client, users + 1
            self._kept.move_to_end(key)
            return client

    def _give_back(self, taken: dict[K, C]) -> list[C]:
        """Returns the clients to close, which are no longer kept."""
        with self._lock:
            for key in taken:
                client, users = self._kept[key]
                self._kept[key] = client, users - 1
            unused = [key for key, (_, users) in self._kept.items() if not users]
            surplus = unused[: max(0, len(self._kept) - self._limit)]
            return [self._kept.pop(key)[0] for key in surplus]
