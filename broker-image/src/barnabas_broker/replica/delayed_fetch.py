"""Fetches that wait for records: the purgatory of the Fetch API.

A fetch that found less than its `min_bytes` waits on each of its partitions. Whatever becomes
readable there is counted as it comes; the fetch is answered when the count reaches what was
missing, when something happened that must be sent at once (leadership, deletion, truncation),
or when its time is up (Kafka's DelayedFetch).
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from barnabas_broker.invariants import violated


class Waitable(Protocol):
    """Something a fetch can wait on: a partition led here."""

    fetch_waiters: set["DelayedFetch"]


class DelayedFetch:
    """One waiting fetch; `answer` reads again and builds the response."""

    __slots__ = ("_answer", "_missing", "_timer", "_watched", "future")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        watched: Iterable[Waitable],
        *,
        missing_bytes: int,
        wait_ms: int,
        answer: Callable[[], object],
    ) -> None:
        self._watched = list(watched)
        self._missing = missing_bytes
        self._answer = answer
        self.future: asyncio.Future[object] = loop.create_future()
        self.future.add_done_callback(self._forget)
        self._timer = loop.call_later(wait_ms / 1000, self.complete)
        for partition in self._watched:
            partition.fetch_waiters.add(self)

    def grew(self, size: int) -> None:
        """`size` more bytes can be read from a watched partition."""
        self._missing -= size
        if self._missing <= 0:
            self.complete()

    def complete(self) -> None:
        """Answer now with whatever there is."""
        if self.future.done():
            return
        try:
            self.future.set_result(self._answer())
        except Exception as error:  # The waiting session reports it, its waker does not.
            self.future.set_exception(error)
        self._forget()

    def _forget(self, _future: object = None) -> None:
        """Stop watching; also reached by cancellation, when the client has gone."""
        assert self.future.done(), violated("an unanswered fetch goes on waiting")
        self._timer.cancel()
        for partition in self._watched:
            partition.fetch_waiters.discard(self)
        self._watched = []
        self._answer = _answered  # The request holds `complete`: both are freed at once then.


def _answered() -> None:
    """In the place of an answer that has been given."""
