"""Long work on the event loop, done in turns with all other work.

A handler that iterates over the items of a request is a generator: it yields after each
one and returns its answer. Most are finished before their first turn is over and never wait. The
others queue in one line, of which the loop serves one turn at a time, however many there are, so
that a hundred large requests delay a small one no more than one does.
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

TURN_S: Final = 0.001
"""How long one piece of work keeps the loop to itself."""

T = TypeVar("T")
A = TypeVar("A")

Work = Generator[None, bool | None, T]
"""Yields where it may be interrupted, and returns what it is for.

A yield gives True after others had their turns: what was read before may have changed since.
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


class Line:
    """Work that needs more than one turn, on one event loop: each round serves one turn."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def join(self, turn: Callable[[], None]) -> None:
        """Have `turn` called when its turn has come."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        self._waiting.append(turn)

    def _next(self) -> None:
        assert self._waiting, violated("a turn is called for each that waits")
        turn = self._waiting.popleft()
        if self._waiting:  # Before the turn, which may join again.
            asyncio.get_running_loop().call_soon(self._next)
        turn()


class Round:
    """A budget that every round of one event loop starts with, in any unit.

    A round calls all callbacks that are ready, and receives once from every readable socket: what
    each of a hundred connections may do in a round at once, all others wait for.
    """

    __slots__ = ("_budget", "_spent")

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._spent = 0.0

    @property
    def is_over(self) -> bool:
        """Whether this round has no more to spend."""
        return self._spent >= self._budget

    def spend(self, amount: float) -> None:
        """Spend some of this round's budget, or more than there is of it."""
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._begin)
        self._spent += amount

    def _begin(self) -> None:
        self._spent = 0.0


class Turns:
    """The unfinished work of one event loop."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._line = Line()

    def begin(self, work: Work[T], working: Working = nullcontext) -> T | Unfinished[T]:
        """Do work for a turn; returns what it comes to where that was enough.

        Each turn is done within what `working` gives, which may count its time. What `work` raises
        is raised, or given to the future. Cancelling the future ends the work.
        """
        try:
            self._turn(work, working)
        except StopIteration as finished:
            answer: T = finished.value
            return answer
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._line.join(partial(self._go_on, work, future, working))
        return Unfinished(future)

    def _turn(self, work: Work[Any], working: Working, *, goes_on: bool = False) -> None:
        """Go on with the work until the turn is over; raises StopIteration at its end."""
        clock = self._clock
        end = clock() + TURN_S
        with working():
            work.send(True if goes_on else None)
            while clock() < end:
                next(work)

    def _go_on(self, work: Work[Any], future: "asyncio.Future[Any]", working: Working) -> None:
        if future.done():
            work.close()
            return
        try:
            self._turn(work, working, goes_on=True)
        except StopIteration as finished:
            future.set_result(finished.value)
        except Exception as error:  # The waiter of the work reports it, not the loop.
            future.set_exception(error)
        else:
            self._line.join(partial(self._go_on, work, future, working))
