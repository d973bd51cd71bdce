"""Requests that take long: what they cost on a connection, and in which order they are served.

What a connection's next request costs is estimated by those before it. Once one has taken long, the
processor time of the thread is what counts: beside busy threads a request that needs a tenth of a
millisecond waits for the interpreter, which is no fault of its own. Estimates fall by halves, so
that a client that mixes long requests with short ones is known for the long ones.

Principals and addresses get the same share of the event loop (start-time fair queueing, as in
`server.process.fair_queue`). Within one flow the earliest due is next: a request is due so many
times later as it is estimated to take longer. A fetch of a tenth of a millisecond does not wait for
a hundred commits of half of one, even from its own address, and none waits for ever.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from time import monotonic, perf_counter, thread_time
from typing import Final

from barnabas_broker.invariants import violated
from barnabas_broker.security.principals import Principal
from barnabas_broker.server.process.cooperative_scheduler import IterationBudget

LONG_REQUEST_S: Final = 0.00005
"""A connection whose requests are estimated to take longer sends long ones."""

ITERATION_LONG_S: Final = 0.0005
"""How much time all long requests have in one iteration of the loop before the next one waits."""

PRESUMED_S: Final = 2 * LONG_REQUEST_S
"""What the first long request is taken to cost at most: whatever ran meanwhile was measured too."""

FALL: Final = 0.5

DUE_FACTOR: Final = 500
"""A request is due after so many times what it is estimated to take."""

DUE_WITHIN_S: Final = 0.5
"""For so long requests that take less can go before one, at most."""

CLIENTS_MAX: Final = 2_000
"""So many principals and addresses are remembered for what they were served."""

Callback = Callable[[], None]
Client = tuple[Principal, str]


def clock_for(cost: float) -> Callable[[], float]:
    """What to measure the next request by, where its estimated cost is this.

    The processor's clock is a call of the system, ten times as dear as the other.
    """
    return thread_time if cost > LONG_REQUEST_S else perf_counter


def next_cost(before: float, took: float) -> float:
    """The estimate in seconds after a request took so long, from the estimate before it."""
    if before <= LONG_REQUEST_S:
        return min(took, PRESUMED_S)
    return max(took, before + FALL * (took - before))


class LongRequests:
    """Sessions that wait to be served a long request, on one event loop."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._budget = IterationBudget(ITERATION_LONG_S)
        self._numbers = count()
        self._size = 0
        # Of each client that waits, its callbacks by when they are due; and when, in virtual time,
        # its next one begins.
        self._queues: dict[Client, list[tuple[float, int, Callback, float]]] = {}
        self._begins: list[tuple[float, int, Client]] = []
        self._now = 0.0
        self._ends: dict[Client, float] = {}  # Of those that do not wait.

    def __len__(self) -> int:
        return self._size

    @property
    def is_over(self) -> bool:
        """Whether long requests have had their time in this iteration of the loop."""
        return self._budget.is_over

    def spend(self, seconds: float) -> None:
        """Count time that a long request took."""
        self._budget.spend(seconds)

    def join(self, callback: Callback, principal: Principal, address: str, cost: float) -> None:
        """Queue a callback; `cost` is the estimate in seconds of what it serves."""
        if not self._size:
            asyncio.get_running_loop().call_soon(self._serve)
        self._size += 1
        client = (principal, address)
        queue = self._queues.get(client)
        if queue is None:
            queue = self._queues[client] = []
            begin = max(self._now, self._ends.pop(client, 0.0))
            heappush(self._begins, (begin, next(self._numbers), client))
        due = self._clock() + min(DUE_FACTOR * cost, DUE_WITHIN_S)
        heappush(queue, (due, next(self._numbers), callback, cost))

    def _next(self) -> Callback:
        begin, _, client = heappop(self._begins)
        assert begin >= self._now, violated("virtual time does not go back")
        queue = self._queues[client]
        _, _, callback, cost = heappop(queue)
        self._size -= 1
        self._now = begin
        if queue:
            heappush(self._begins, (begin + cost, next(self._numbers), client))
            return callback
        del self._queues[client]
        if not self._queues:
            self._ends.clear()  # All were served, and none is owed more than another.
        elif len(self._ends) < CLIENTS_MAX:
            self._ends[client] = begin + cost
        else:  # A new flow does not move virtual time on, as flows are unlimited.
            self._ends = {each: end for each, end in self._ends.items() if end > begin}
            if len(self._ends) > CLIENTS_MAX // 2:
                self._ends.clear()
        return callback

    def _serve(self) -> None:
        """Serve one request, and more while the iteration has time."""
        while True:
            callback = self._next()
            if not self._size:
                callback()  # It may join again, and is then called in the next iteration.
                return
            try:
                callback()
            except BaseException:
                asyncio.get_running_loop().call_soon(self._serve)
                raise
            if self._budget.is_over:
                asyncio.get_running_loop().call_soon(self._serve)
                return
