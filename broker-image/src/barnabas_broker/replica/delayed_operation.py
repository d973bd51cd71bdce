"""Requests that wait on partitions until there is a verdict on each (Kafka's DelayedOperation).

A request waits on each of its undecided partitions. It is answered when all are
decided, or when its time is up; then the rest has timed out. Subclasses say what is waited for.

Partitions change while a request is still being served: one that is worked on in turns comes
to its end after others have had theirs. So it checks as it begins to wait, and what was decided by
then completes (Kafka's `tryCompleteElseWatch`).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from barnabas_broker.cluster.failures import logged_refusal
from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode


class Undecided(Protocol):
    """What is waited for in one partition; `complete` is called once with the verdict."""

    @property
    def partition(self) -> object: ...
    @property
    def complete(self) -> Callable[[ErrorCode], None]: ...


Part = TypeVar("Part", bound=Undecided)


class DelayedOperation(ABC, Generic[Part]):
    """One waiting request; its future gets `response` when every partition is complete."""

    __slots__ = ("_pending", "_response", "_timer", "future")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pending: Iterable[Part],
        *,
        timeout_ms: int,
        response: object,
    ) -> None:
        self._pending = list(pending)
        self._response = response
        self.future: asyncio.Future[Any] = loop.create_future()
        self.future.add_done_callback(self._forget)
        self._timer = loop.call_later(max(timeout_ms, 0) / 1000, self._expire)
        for each in self._pending:
            self._waiters(each).add(self)
        self.look()

    @abstractmethod
    def _verdict(self, part: Part) -> ErrorCode | None:
        """NONE once it is as wanted, None while it is not, or why it never will be."""

    @abstractmethod
    def _waiters(self, part: Part) -> set[Any]:
        """Those of the partition that look when something has changed there."""

    def look(self) -> None:
        """Something changed in one of the partitions: complete what is decided now."""
        if self.future.done():
            return
        undecided = []
        for each in self._pending:
            code = self._verdict(each)
            if code is None:
                undecided.append(each)
            else:
                _complete(each, code)
        self._keep(undecided)

    def _expire(self) -> None:
        if not self.future.done():
            for each in self._pending:
                _complete(each, ErrorCode.REQUEST_TIMED_OUT)
            self._keep([])

    def _keep(self, undecided: list[Part]) -> None:
        """Go on waiting for these, or answer."""
        waited, self._pending = self._pending, undecided
        assert len(undecided) <= len(waited), violated("a request waits for less and less")
        still = {id(each.partition) for each in undecided}
        for each in waited:
            if id(each.partition) not in still:
                self._waiters(each).discard(self)
        if not undecided:
            self.future.set_result(self._response)

    def _forget(self, _future: object = None) -> None:
        """Stop waiting; also reached by cancellation, when the client has gone."""
        assert self.future.done(), violated("an unanswered request goes on waiting")
        self._timer.cancel()
        for each in self._pending:
            self._waiters(each).discard(self)
        self._pending = []


def _complete(part: Undecided, code: ErrorCode) -> None:
    """Complete one partition; an error in its callback does not affect the others."""
    try:
        part.complete(code)
    except Exception as error:
        logged_refusal(error, "Verdict", part.partition)
