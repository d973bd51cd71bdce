"""What many want of one, handed out so that each flow gets the same share of it.

Start-time fair queueing (Goyal, Vin and Cheng, 1996): each item begins, in virtual time, where the
one before it in its flow ends, or now; the one that begins first is next. A flow with many items
waits for those with few, and a new flow waits for what is in work and
for one item of each flow at most.
"""

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, NamedTuple, TypeVar

from barnabas_broker.invariants import violated
from barnabas_broker.security.principals import Principal

T = TypeVar("T")

FORGOTTEN_BEYOND: Final = 1_000
"""So many flows are remembered before those are looked for that are owed nothing."""

FLOWS_MAX: Final = 10 * FORGOTTEN_BEYOND
"""The most flows to remember besides waiting ones; beyond it all are forgotten."""


class Flow(NamedTuple):
    """Whose work it is, and of which magnitude is what it came as.

    The magnitude keeps bombs apart from what they disturb where both come from one address: two
    kilobytes that become sixty million do not queue with sends of megabytes.
    """

    principal: Principal
    address: str
    magnitude: int


def flow_of(principal: Principal, address: str, size: int) -> Flow:
    """The flow of work that arrived as `size` bytes; sizes within a factor of four share one."""
    return Flow(principal, address, size.bit_length() // 2)


class FairQueue(Generic[T]):
    """Items that wait, each of a flow and at a cost."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, T]] = []
        self._now = 0
        self._ends: dict[Hashable, int] = {}
        self._forget_beyond = FORGOTTEN_BEYOND
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, item: T, flow: Hashable, cost: int) -> None:
        """Have an item wait; `cost` is at least 1."""
        begin = max(self._now, self._ends.get(flow, 0))
        self._ends[flow] = begin + cost
        heappush(self._heap, (begin, next(self._numbers), item))
        if len(self._ends) > self._forget_beyond + 2 * len(self._heap):
            self._forget()

    def pop(self) -> T:
        """The next item; there must be one."""
        begin, _, item = heappop(self._heap)
        assert begin >= self._now, violated("virtual time does not go back")
        self._now = begin
        return item

    def remove(self, is_obsolete: Callable[[T], bool]) -> None:
        """Drop items that are not to be handed out any more."""
        self._heap = [each for each in self._heap if not is_obsolete(each[2])]
        heapify(self._heap)

    def _forget(self) -> None:
        self._ends = {each: end for each, end in self._ends.items() if end > self._now}
        # Flows that come new do not move virtual time on, and there is no end of addresses.
        if len(self._ends) > FLOWS_MAX // 2 + 2 * len(self._heap):
            self._ends.clear()
        # Not again at the next item: to look at all of them costs as much as so many items.
        self._forget_beyond = max(FORGOTTEN_BEYOND, min(2 * len(self._ends), FLOWS_MAX))
