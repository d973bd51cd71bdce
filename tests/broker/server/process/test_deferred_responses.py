"""Answers made of what may still be on its way."""

import asyncio
from typing import Any

import pytest

from barnabas_broker.server.process.deferred_responses import then, together
from barnabas_kafka.errors import ErrorCode, KafkaError


def doubled(found: int | asyncio.Future[int]) -> int | asyncio.Future[int]:
    """Twice a number, or the code of an error."""
    return then(found, lambda number: number * 2, lambda error: int(error.code))


def test_a_completed_result_is_returned_at_once() -> None:
    """Nothing is put off that need not be."""
    assert doubled(2) == 4
    assert together([1, 2], sum) == 3
    assert together([], sum) == 0


def test_deferred_results_keep_their_order() -> None:
    """In the order asked, whichever came first."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        first: asyncio.Future[int] = loop.create_future()
        second: asyncio.Future[int] = loop.create_future()
        all_of_them: Any = together([first, 5, second], list)
        twice: Any = doubled(first)
        second.set_result(3)
        first.set_result(1)
        assert await all_of_them == [1, 5, 3]
        assert await twice == 2

    asyncio.run(scenario())


def test_an_error_is_an_answer_too() -> None:
    """What fails with an error of the protocol is refused with it."""

    async def scenario() -> None:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        answer: Any = doubled(found)
        found.set_exception(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        assert await answer == ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(scenario())


def test_a_client_that_goes_ends_the_wait() -> None:
    """Cancelling the answer cancels what it waits for."""

    async def scenario() -> None:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        answer: Any = doubled(found)
        await asyncio.sleep(0)
        answer.cancel()
        await asyncio.wait([answer])
        assert found.cancelled()

    asyncio.run(scenario())


def test_an_encoding_error_reaches_the_waiter() -> None:
    """So that it is reported with the request, and the wait ends."""

    async def scenario() -> None:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        answer: Any = then(found, (1).__floordiv__, lambda error: int(error.code))
        found.set_result(0)
        with pytest.raises(ZeroDivisionError):
            await answer
        gone: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiting: Any = doubled(gone)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(scenario())
