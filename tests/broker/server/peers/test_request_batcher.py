"""Batching of requests between brokers: one in flight per broker, the rest in the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from barnabas_broker.server.peers import request_batcher as subject
from barnabas_broker.server.peers.peers import PeerError, UnreachableError
from barnabas_broker.server.peers.request_batcher import RequestBatcher


class Broker:
    """Notes each request, and answers it when told to."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, dict[str, int]]] = []
        self._owed: list[tuple[Mapping[str, int], asyncio.Future[Mapping[str, int]]]] = []

    async def send(self, broker: int, items: Mapping[str, int]) -> Mapping[str, int]:
        """A request, answered with ten times each item."""
        self.requests.append((broker, dict(items)))
        owed: asyncio.Future[Mapping[str, int]] = asyncio.get_running_loop().create_future()
        self._owed.append((items, owed))
        return await owed

    async def answer(self, error: Exception | None = None, *, of: int = 0) -> None:
        """Answer the oldest request, or the one that stands there."""
        items, owed = self._owed.pop(of)
        if error is None:
            owed.set_result({key: 10 * item for key, item in items.items()})
        else:
            owed.set_exception(error)
        await settle()


async def settle() -> None:
    """Let everything happen that needs no answer."""
    for _ in range(10):
        await asyncio.sleep(0)


def received(scenario: Callable[[Broker, RequestBatcher[str, int, int]], Awaitable[None]]) -> None:
    """Run a scenario of one purpose and its brokers."""

    async def whole() -> None:
        broker = Broker()
        batches: RequestBatcher[str, int, int] = RequestBatcher(broker.send)
        try:
            await scenario(broker, batches)
        finally:
            await batches.stop()

    asyncio.run(whole())


def ask(
    batches: RequestBatcher[str, int, int], key: str, item: int, broker: int = 1
) -> asyncio.Task[int]:
    """Somebody who waits for an answer."""
    return asyncio.create_task(batches.ask(broker, key, item))


def test_requests_queued_meanwhile_are_sent_together() -> None:
    """Not to other brokers, which have requests of their own."""

    async def scenario(broker: Broker, batches: RequestBatcher[str, int, int]) -> None:
        first = ask(batches, "a", 1)
        await settle()
        more = [ask(batches, "b", 2), ask(batches, "c", 3)]
        elsewhere = ask(batches, "d", 4, broker=2)
        await settle()
        assert broker.requests == [(1, {"a": 1}), (2, {"d": 4})]
        await broker.answer()
        assert broker.requests[2:] == [(1, {"b": 2, "c": 3})]
        await broker.answer(of=1)
        await broker.answer()
        assert [await each for each in (first, *more, elsewhere)] == [10, 20, 30, 40]

    received(scenario)


def test_no_request_has_two_of_one_key() -> None:
    """Their answers could not be told apart; nor does anything wait for ever or out of turn."""

    async def scenario(broker: Broker, batches: RequestBatcher[str, int, int]) -> None:
        asked = [ask(batches, key, item) for item, key in enumerate("aabab")]
        await settle()
        for _ in range(3):
            await broker.answer()
        assert [items for _, items in broker.requests] == [
            {"a": 0, "b": 2},
            {"a": 1, "b": 4},
            {"a": 3},
        ]
        assert [await each for each in asked] == [0, 10, 20, 30, 40]

    received(scenario)


def test_a_failed_request_fails_its_callers_only() -> None:
    """Whoever comes later is asked for with the next one, and so is what is asked again."""

    async def scenario(broker: Broker, batches: RequestBatcher[str, int, int]) -> None:
        lost = ask(batches, "a", 1)
        await settle()
        kept = ask(batches, "b", 2)
        await settle()
        await broker.answer(UnreachableError("it is away"))
        with pytest.raises(PeerError, match="it is away"):
            await lost
        again = ask(batches, "a", 1)
        await broker.answer()
        await broker.answer()
        assert [await kept, await again] == [20, 10]

    received(scenario)


def test_a_cancelled_caller_is_left_out_of_the_batch() -> None:
    """And takes nothing from the others."""

    async def scenario(broker: Broker, batches: RequestBatcher[str, int, int]) -> None:
        first, second, third = (ask(batches, key, 1) for key in "abc")
        await settle()
        late = ask(batches, "d", 1)
        await settle()
        late.cancel()
        second.cancel()
        await broker.answer()
        assert [await first, await third] == [10, 10]
        assert len(broker.requests) == 1

    received(scenario)


def test_callers_waiting_for_a_silent_broker_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What waits is bounded, and so is a request."""
    monkeypatch.setattr(subject, "ITEMS_MAX", 2)
    monkeypatch.setattr(subject, "WAITING_MAX", 3)

    async def scenario(broker: Broker, batches: RequestBatcher[str, int, int]) -> None:
        asked = [ask(batches, key, 1) for key in "abc"]
        await settle()
        assert broker.requests == [(1, {"a": 1, "b": 1})]
        asked += [ask(batches, key, 1) for key in "de"]
        await settle()
        with pytest.raises(PeerError, match="3 requests are already queued for broker 1"):
            await batches.ask(1, "f", 1)
        for _ in range(3):
            await broker.answer()
        assert [await each for each in asked] == [10] * 5

    received(scenario)


def test_a_batch_cancelled_elsewhere_fails_its_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its callers are told, none is cancelled with it, and what comes next is sent."""

    async def scenario(broker: Broker, batches: RequestBatcher[str, int, int]) -> None:
        send = batches._send
        cancelled: list[int] = []

        async def cancel(to: int, items: Mapping[str, int]) -> Mapping[str, int]:
            if not cancelled:
                cancelled.append(to)
                raise asyncio.CancelledError
            return await send(to, items)

        monkeypatch.setattr(batches, "_send", cancel)
        asked = ask(batches, "a", 1)
        with pytest.raises(PeerError, match="cancelled"):
            await asked
        after = ask(batches, "b", 2)
        await settle()
        await broker.answer()
        assert await after == 20

    received(scenario)


def test_closing_cancels_waiting_callers() -> None:
    """The broker stops."""

    async def scenario(broker: Broker, batches: RequestBatcher[str, int, int]) -> None:
        asked = [ask(batches, "a", 1), ask(batches, "a", 2)]
        await settle()
        await batches.stop()
        await asyncio.wait(asked)
        assert [each.cancelled() for each in asked] == [True, True]

    received(scenario)


def test_closing_cancels_callers_of_an_unsent_batch() -> None:
    """A batcher that is stopped in the turn in which something was queued."""

    async def scenario(broker: Broker, batches: RequestBatcher[str, int, int]) -> None:
        asked = ask(batches, "a", 1)
        await asyncio.sleep(0)  # It is queued, and the task that sends it has not begun.
        await batches.stop()
        await asyncio.wait({asked})
        assert (asked.cancelled(), broker.requests) == (True, [])

    received(scenario)
