"""Small answers that leave behind each other, once what came in a pass of the loop is served.

To send an answer wakes the client that waits for it, which costs more than all else about the call.
A client of many connections, or a proxy, is awake again for as long as an answer takes it: where
the next one comes only after another request has been served, it sleeps by then, and is woken for
each. In a burst one wakes it, and the others find it awake. What a request asks for has been done,
and appended, before its answer joins a burst, and answers of one connection keep their order.

Coalescing delays a response by one request's service time: only requests
that are served in some microseconds join, and a burst leaves when it is full.
"""

import asyncio
from collections import deque
from typing import Final, Protocol

ANSWERS_MAX: Final = 32
"""Answers of one burst: so many requests are served in a millisecond at most."""


class Leaving(Protocol):
    """A connection with an answer that waits for the burst."""

    def send_gathered(self) -> None:
        """Send what there is."""
        ...


class ResponseCoalescer:
    """What leaves together, on one event loop."""

    def __init__(self) -> None:
        self._leaving: deque[Leaving] = deque()
        self._called = False

    def join(self, connection: Leaving) -> None:
        """Have what `connection` has to send leave at the end of this pass of the loop, or now."""
        self._leaving.append(connection)
        if len(self._leaving) >= ANSWERS_MAX:
            self._leave()
        elif not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self._called = False
        self._leave()

    def _leave(self) -> None:
        leaving = self._leaving
        try:
            while leaving:
                leaving.popleft().send_gathered()
        finally:
            if leaving and not self._called:  # One of them broke, which is not the others' fault.
                self._called = True
                asyncio.get_running_loop().call_soon(self._end)
