"""Requests of the fast path that wait for their responses, and how these are sent.

When a rebalance completes, one result of the group coordinator answers hundreds of requests. The
responses leave in callbacks of their own, in time slices between other work: no step of a
coordinator ever begins within another, and none waits for all responses.
"""

import asyncio
from collections import deque
from time import monotonic
from typing import Protocol

from barnabas_broker.coordinator.waiting import Parked
from barnabas_broker.server.process.cooperative_scheduler import TIME_SLICE_S
from barnabas_broker.server.requests.api_metrics import ApiMetrics


class Connection(Protocol):
    """What sends the answer of a request that came by it."""

    def answer(self, request: "PendingResponse") -> None:
        """Send it."""
        ...


class PendingResponse(Parked):
    """One response. The dispatcher counts it, the session that it came by sends its answer."""

    __slots__ = ("_answers", "began_ns", "correlation_id", "metrics", "session", "version")

    metrics: ApiMetrics
    began_ns: int

    def __init__(self, answers: "Answers", version: int, correlation_id: int) -> None:
        super().__init__()
        self._answers = answers
        self.version = version
        self.correlation_id = correlation_id
        self.session: Connection | None = None  # None until a session waits.

    def there(self) -> None:
        """Have the answer leave, unless the request is still being served."""
        if self.session is not None:
            self._answers.add(self)

    def encoded(self) -> bytes:
        """The response as it is sent, its size first; raises EncodeError."""
        raise NotImplementedError


class Answers:
    """What is sent in the next iteration of one event loop."""

    def __init__(self) -> None:
        self._there: deque[PendingResponse] = deque()
        self._called = False

    def add(self, request: PendingResponse) -> None:
        """Have a request answered soon."""
        self._there.append(request)
        self._call()

    def _call(self) -> None:
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._leave)

    def _leave(self) -> None:
        end = monotonic() + TIME_SLICE_S
        try:
            while self._there:
                request = self._there.popleft()
                if request.session is not None:
                    request.session.answer(request)
                if monotonic() >= end:
                    break
        finally:
            self._called = False
            if self._there:
                self._call()
