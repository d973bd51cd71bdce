"""Requests that take long: what they cost on a connection, and whose turn it is to be served.

What a connection's next request costs is estimated by those before it. Once one has taken long, the
processor time of the thread is what counts: beside busy threads a request that needs a tenth of a
millisecond waits for the interpreter, which is no fault of its own. Estimates fall by halves, so
that who mixes long requests with short ones is known for the long ones.

Those that wait stand in flows by principal, address and magnitude of the cost, and each flow gets
the same share of the event loop (`server.process.fair_queue`). A fetch of a tenth of a millisecond
waits for its like, not for a hundred commits of a millisecond each, even from one address.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Final

from barnabas_broker.security.principals import Principal
from barnabas_broker.server.process.cooperative_scheduler import Round
from barnabas_broker.server.process.fair_queue import FairQueue, Flow

LONG_REQUEST_S: Final = 0.00005
"""A connection whose requests are estimated to take longer sends long ones."""

ROUND_LONG_S: Final = 0.001
"""How much time all long requests have in one round of the loop before the next of them waits."""

PRESUMED_S: Final = 2 * LONG_REQUEST_S
"""What the first long request is taken to cost at most: whatever ran meanwhile was measured too."""

FALL: Final = 0.5


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
    """Who waits to be served a long request, on one event loop."""

    def __init__(self) -> None:
        self._queue: FairQueue[Callable[[], None]] = FairQueue()
        self.rounds = 0
        self._round = Round(ROUND_LONG_S)

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def is_over(self) -> bool:
        """Whether long requests have had their time in this round of the loop."""
        return self._round.is_over

    def spend(self, seconds: float) -> None:
        """Count time that a long request took."""
        self._round.spend(seconds)

    def join(
        self, turn: Callable[[], None], principal: Principal, address: str, cost: float
    ) -> None:
        """Have `turn` called when the flow's turn has come; `cost` is the estimate in seconds."""
        if not self._queue:
            asyncio.get_running_loop().call_soon(self._serve)
        microseconds = max(int(cost * 1_000_000), 1)
        flow = Flow(principal, address, microseconds.bit_length())
        self._queue.push(turn, flow, microseconds)

    def _serve(self) -> None:
        """Serve one turn, and more of them while the round has time."""
        self.rounds += 1
        while True:
            turn = self._queue.pop()
            if not self._queue:
                turn()  # It may join again, and is then called in the next round.
                return
            try:
                turn()
            except BaseException:
                asyncio.get_running_loop().call_soon(self._serve)
                raise
            if self._round.is_over:
                asyncio.get_running_loop().call_soon(self._serve)
                return
