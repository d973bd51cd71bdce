"""Waiting fetches, with the partition reduced to who waits on it."""

import asyncio
import gc
from collections.abc import Callable
from weakref import ref

import pytest

from barnabas_broker.replica.delayed_fetch import DelayedFetch


class Shelf:
    """Something that fetches can wait on."""

    def __init__(self) -> None:
        self.fetch_waiters: set[DelayedFetch] = set()


async def waiting(
    shelves: list[Shelf],
    *,
    missing: int = 100,
    wait_ms: int = 60_000,
    answer: Callable[[], object] = lambda: "answer",
) -> DelayedFetch:
    """A fetch that waits for so many bytes."""
    return DelayedFetch(
        asyncio.get_running_loop(),
        shelves,
        missing_bytes=missing,
        wait_ms=wait_ms,
        answer=answer,
    )


def test_bytes_of_all_partitions_count_together() -> None:
    """`min_bytes` is of the whole response."""

    async def scenario() -> None:
        first, second = Shelf(), Shelf()
        fetch = await waiting([first, second])
        fetch.grew(60)
        assert not fetch.future.done()
        fetch.grew(40)
        assert await fetch.future == "answer"
        assert first.fetch_waiters == second.fetch_waiters == set()

    asyncio.run(scenario())


class Hurried:
    """A request that can have its fetch answered."""

    hurry: Callable[[], None]

    def answer(self) -> str:
        """What the fetch holds it for."""
        return "answer"


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_fetch_callback_is_freed_without_garbage_collection(cancelled: bool) -> None:
    """A collection is rare, so parked fetches would pile up."""

    async def scenario() -> None:
        request = Hurried()
        fetch = await waiting([Shelf()], answer=request.answer)
        request.hurry = fetch.complete
        if cancelled:
            fetch.future.cancel()
        else:
            request.hurry()
        await asyncio.wait({fetch.future})
        gone = ref(request)
        del request, fetch
        assert gone() is None

    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()


def test_time_is_up() -> None:
    """At `max_wait_ms` there is an answer, whatever was found."""

    async def scenario() -> None:
        shelf = Shelf()
        assert await (await waiting([shelf], wait_ms=1)).future == "answer"
        assert shelf.fetch_waiters == set()

    asyncio.run(scenario())


def test_it_is_answered_once() -> None:
    """Growth after the answer is for the next fetch."""
    answers = []

    async def scenario() -> None:
        fetch = await waiting([Shelf()], answer=lambda: answers.append(1))
        fetch.complete()
        fetch.grew(1000)
        fetch.complete()

    asyncio.run(scenario())
    assert answers == [1]


def test_a_client_that_left_is_forgotten() -> None:
    """A cancelled fetch reads nothing and leaves no trace on its partitions."""

    async def scenario() -> None:
        shelf = Shelf()
        fetch = await waiting([shelf], answer=lambda: pytest.fail("nobody is there to be told"))
        fetch.future.cancel()
        await asyncio.sleep(0)  # Cancellation is told to callbacks by the loop.
        assert shelf.fetch_waiters == set()

    asyncio.run(scenario())


def test_a_failing_read_is_the_waiters_failure() -> None:
    """The producer whose append completed the fetch must not meet its error."""

    def broken() -> object:
        raise OSError("the disk is gone")

    async def scenario() -> None:
        fetch = await waiting([Shelf()], answer=broken)
        fetch.grew(1000)
        with pytest.raises(OSError, match="gone"):
            await fetch.future

    asyncio.run(scenario())
