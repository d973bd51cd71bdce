"""Requests to other brokers that carry what many have to ask, one at a time for each broker.

A broker answers the requests of a connection one after the other, and what coordinators and leaders
of transactions ask each other is answered when it is replicated. Sent one by one, every transaction
would wait for all before it. Instead, what comes while a broker owes an answer goes with the next
request (Kafka's `AddPartitionsToTxnManager` and `TransactionMarkerChannelManager`).
Lives on the event loop.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from barnabas_broker.server.peers import PeerError

ITEMS_MAX: Final = 1000
"""In one request."""

WAITING_MAX: Final = 20_000
"""For one broker; whoever comes then is told that it cannot be reached."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Key = TypeVar("Key", bound=Hashable)


class _Waiting(NamedTuple, Generic[Key, Item, Answer]):
    key: Key
    item: Item
    answered: "asyncio.Future[Answer]"


class Batches(Generic[Key, Item, Answer]):
    """What is asked of other brokers for one purpose. `stop` when done with it."""

    def __init__(
        self, send: Callable[[int, Mapping[Key, Item]], Awaitable[Mapping[Key, Answer]]]
    ) -> None:
        """`send(broker, items)` sends one request, and answers for each key; it has a deadline."""
        self._send = send
        self._waiting: dict[int, deque[_Waiting[Key, Item, Answer]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, broker: int, key: Key, item: Item) -> Answer:
        """The answer for an item, of which no request has two with the same key.

        Raises what `send` raises, for everything in that request; PeerError where too much waits.
        Cancelling gives up the answer only.
        """
        waiting = self._waiting.get(broker)
        if waiting is None:
            waiting = self._waiting[broker] = deque()
            task = asyncio.get_running_loop().create_task(self._work(broker, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif len(waiting) >= WAITING_MAX:
            raise PeerError(f"broker {broker} has {WAITING_MAX} things to be asked already")
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting.append(_Waiting(key, item, answered))
        return await answered

    async def stop(self) -> None:
        """Ask nothing any more; who waits is cancelled."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _work(self, broker: int, waiting: deque[_Waiting[Key, Item, Answer]]) -> None:
        batch: dict[Key, _Waiting[Key, Item, Answer]] = {}
        try:
            while batch := _next_batch(waiting):
                try:
                    answers = await self._send(
                        broker, {key: each.item for key, each in batch.items()}
                    )
                    told = {key: answers[key] for key in batch}
                except Exception as error:  # Whoever waits for an answer looks at it.
                    for each in batch.values():
                        if not each.answered.done():
                            each.answered.set_exception(error)
                else:
                    for key, each in batch.items():
                        if not each.answered.done():
                            each.answered.set_result(told[key])
        finally:
            # No turn of the event loop is between the last look at `waiting` and this.
            del self._waiting[broker]
            for each in (*batch.values(), *waiting):
                each.answered.cancel()


def _next_batch(
    waiting: deque[_Waiting[Key, Item, Answer]],
) -> dict[Key, _Waiting[Key, Item, Answer]]:
    """What the next request is to carry, for which somebody still waits; in the order it came."""
    batch: dict[Key, _Waiting[Key, Item, Answer]] = {}
    later: list[_Waiting[Key, Item, Answer]] = []
    while waiting and len(batch) < ITEMS_MAX:
        each = waiting.popleft()
        if each.answered.done():
            continue
        if each.key in batch:
            later.append(each)
        else:
            batch[each.key] = each
    waiting.extendleft(reversed(later))
    return batch
