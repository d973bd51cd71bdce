"""Batches requests between brokers: at most one request in flight to each broker.

A broker processes the requests of a connection in order, and requests about transactions complete
only when they are replicated. With one request per transaction each would wait for all before it.
Items that arrive while a request is in flight are sent together in the next one, as in Kafka's
`AddPartitionsToTxnManager` and `TransactionMarkerChannelManager`. Runs on the event loop.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from barnabas_broker.server.peers.peers import PeerError
from barnabas_broker.server.process.supervised_tasks import background

ITEMS_MAX: Final = 1000
"""Items in one request."""

WAITING_MAX: Final = 20_000
"""Queued items for one broker; further ones fail with PeerError."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Key = TypeVar("Key", bound=Hashable)


class _Waiting(NamedTuple, Generic[Key, Item, Answer]):
    key: Key
    item: Item
    answered: "asyncio.Future[Answer]"


class RequestBatcher(Generic[Key, Item, Answer]):
    """The queues of one kind of request, by broker. Call `stop` when done."""

    def __init__(
        self, send: Callable[[int, Mapping[Key, Item]], Awaitable[Mapping[Key, Answer]]]
    ) -> None:
        """`send(broker, items)` sends one request with a timeout and returns a result per key."""
        self._send = send
        self._waiting: dict[int, deque[_Waiting[Key, Item, Answer]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, broker: int, key: Key, item: Item) -> Answer:
        """Queue an item and return its result. A request never carries two items with one key.

        Raises what `send` raises for the request that carried the item, or PeerError if the queue
        is full. Cancelling removes a queued item; one in flight is not recalled.
        """
        waiting = self._waiting.get(broker)
        if waiting is None:
            waiting = self._waiting[broker] = deque()
            name = f"batched requests to broker {broker}"
            task = background().once(name, self._work(broker, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif len(waiting) >= WAITING_MAX:
            raise PeerError(f"{WAITING_MAX} requests are already queued for broker {broker}")
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting.append(_Waiting(key, item, answered))
        return await answered

    async def stop(self) -> None:
        """Cancel everything queued or in flight."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for waiting in self._waiting.values():  # Of tasks that were cancelled before they began.
            for each in waiting:
                each.answered.cancel()
        self._waiting.clear()

    async def _work(self, broker: int, waiting: deque[_Waiting[Key, Item, Answer]]) -> None:
        batch: dict[Key, _Waiting[Key, Item, Answer]] = {}
        try:
            while batch := _next_batch(waiting):
                try:
                    answers = await self._send(
                        broker, {key: each.item for key, each in batch.items()}
                    )
                    results = {key: answers[key] for key in batch}
                except Exception as error:  # Raised in every caller of this batch.
                    _refuse(batch.values(), error)
                except asyncio.CancelledError:
                    task = asyncio.current_task()
                    if task is not None and task.cancelling():
                        raise
                    # Another caller cancelled the shared future, which ends no other's request.
                    _refuse(batch.values(), PeerError("the request was cancelled"))
                else:
                    for key, each in batch.items():
                        if not each.answered.done():
                            each.answered.set_result(results[key])
        finally:
            # There is no await between the last read of `waiting` and this line.
            del self._waiting[broker]
            for each in (*batch.values(), *waiting):
                each.answered.cancel()


def _refuse(batch: Iterable[_Waiting[Any, Any, Any]], error: Exception) -> None:
    for each in batch:
        if not each.answered.done():
            each.answered.set_exception(error)


def _next_batch(
    waiting: deque[_Waiting[Key, Item, Answer]],
) -> dict[Key, _Waiting[Key, Item, Answer]]:
    """Take the items of the next request in order of arrival, without cancelled ones."""
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
