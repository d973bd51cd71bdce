"""Cooperative scheduling of long work on the event loop, in time slices.

A handler that iterates over the items of a request is a generator: it yields after each
one and returns its answer. Most finish within their first time slice and never wait. The others
share one run queue, of which each iteration of the loop runs one time slice, however many there
are, so that a hundred large requests delay a small one no more than one does.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from barnabas_broker.invariants import violated

TIME_SLICE_S: Final = 0.001
"""How long one piece of work runs before it yields to the loop."""

T = TypeVar("T")
A = TypeVar("A")

Work = Generator[None, bool | None, T]
"""Yields where it may be interrupted, and returns what it is for.

A yield gives True after other work has run: what was read before may have changed since.
"""

Working = Callable[[], AbstractContextManager[None]]


def each(items: Iterable[A], do: Callable[[A], T]) -> Work[list[T]]:
    """What `do` makes of each item, in order."""
    done = []
    for item in items:
        done.append(do(item))
        yield
    return done


@dataclass(frozen=True, slots=True)
class Unfinished(Generic[T]):
    """Work in the queue; `future` gets its result."""

    future: asyncio.Future[T]


class RunQueue:
    """Callbacks of one event loop, of which each iteration runs one."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def join(self, callback: Callable[[], None]) -> None:
        """Append a callback, which may join again when it is called."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        self._waiting.append(callback)

    def _next(self) -> None:
        assert self._waiting, violated("the loop calls once for each that waits")
        callback = self._waiting.popleft()
        if self._waiting:  # Before the callback, which may join again.
            asyncio.get_running_loop().call_soon(self._next)
        callback()


class IterationBudget:
    """A budget that every iteration of one event loop starts with, in any unit.

    An iteration runs all callbacks that are ready, and receives once from every readable socket:
    what each of a hundred connections may do in one iteration, all others wait for.
    """

    __slots__ = ("_budget", "_spent")

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._spent = 0.0

    @property
    def is_over(self) -> bool:
        """Whether this iteration has no more to spend."""
        return self._spent >= self._budget

    def spend(self, amount: float) -> None:
        """Spend some of this iteration's budget, or more than there is of it."""
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._begin)
        self._spent += amount

    def _begin(self) -> None:
        self._spent = 0.0


class CooperativeScheduler:
    """The unfinished work of one event loop."""

    def __init__(
        self, *, clock: Callable[[], float] = monotonic, time_slice_s: float | None = None
    ) -> None:
        """Time slices of `TIME_SLICE_S`, unless `time_slice_s` says otherwise."""
        self._clock = clock
        self._time_slice_s = time_slice_s
        self._run_queue = RunQueue()

    def begin(self, work: Work[T], working: Working = nullcontext) -> T | Unfinished[T]:
        """Do work for a time slice; returns what it comes to where that was enough.

        Each time slice is done within what `working` gives, which may count its time. What `work`
        raises is raised, or set on the future. Cancelling the future ends the work.
        """
        try:
            self._run_time_slice(work, working)
        except StopIteration as finished:
            answer: T = finished.value
            return answer
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._run_queue.join(partial(self._resume, work, future, working))
        return Unfinished(future)

    def _run_time_slice(self, work: Work[Any], working: Working, *, goes_on: bool = False) -> None:
        """Go on with the work until the time slice is over; raises StopIteration at its end."""
        clock = self._clock
        end = clock() + (TIME_SLICE_S if self._time_slice_s is None else self._time_slice_s)
        with working():
            work.send(True if goes_on else None)
            while clock() < end:
                next(work)

    def _resume(self, work: Work[Any], future: "asyncio.Future[Any]", working: Working) -> None:
        if future.done():
            work.close()
            return
        try:
            self._run_time_slice(work, working, goes_on=True)
        except StopIteration as finished:
            future.set_result(finished.value)
        except Exception as error:  # The waiter of the work reports it, not the loop.
            future.set_exception(error)
        else:
            self._run_queue.join(partial(self._resume, work, future, working))
