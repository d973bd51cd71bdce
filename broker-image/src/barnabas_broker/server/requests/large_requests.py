"""Requests that name thousands of things: decoded and encoded in a thread, handled in time slices.

One is in work at a time, because what was decoded is many times what arrived; the others wait as
the bytes they came in, of which there are only so many (`server.process.offload_pool`), and come in
turns of whose they are (`server.process.fair_queue`). A fetch that waits for records lets the next
one begin. Requests that the controller serves have a place of their own: they keep it while they
wait for ZooKeeper, and metadata and offset commits are served meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from types import GeneratorType
from typing import Any, NamedTuple

from barnabas_broker.server.process.cooperative_scheduler import (
    CooperativeScheduler,
    Unfinished,
    Work,
    Working,
)
from barnabas_broker.server.process.fair_queue import Flow
from barnabas_broker.server.process.offload_pool import FairPlace, OffloadPool


class Ending(NamedTuple):
    """What becomes of a response: `settle` on the loop, then `encode`, to the parts of its body.

    Whatever is done for the request before, in time slices and threads, is done within `working`.
    """

    settle: Callable[[Any], Any]
    encode: Callable[[Any], Any]
    working: Working


class LargeRequests:
    """The requests of one broker that do not fit into a time slice."""

    def __init__(self, heavy: OffloadPool) -> None:
        self._heavy = heavy
        self._scheduler = CooperativeScheduler()
        self._place = FairPlace()
        self._place_at_controller = FairPlace()

    def begin(self, work: Work[Any], ending: Ending) -> Any:
        """The answer that work comes to in its first turn, else a future of an encoded one."""
        answer: Any = work
        while isinstance(answer, GeneratorType):
            answer = self._scheduler.begin(answer, ending.working)
            if isinstance(answer, Unfinished):
                return asyncio.ensure_future(self._encoded(answer.future, ending))
        return answer

    def large(
        self,
        frame: memoryview,
        flow: Flow,
        *,
        decode: Callable[[memoryview], Any],
        handle: Callable[[Any], Any],
        ending: Ending,
        may_wait: bool,
        at_controller: bool,
    ) -> "asyncio.Future[Any]":
        """A future of the encoded answer; `may_wait` where it may be long until there is one.

        `at_controller` is a request that the controller serves. Raises KafkaError where there is no
        room for the request.
        """
        release = self._heavy.reserve(len(frame), flow)
        copy = memoryview(bytearray(frame))
        decoding = partial(decode, copy)
        place = self._place_at_controller if at_controller else self._place
        work = partial(self._in_place, place, decoding, handle, ending, may_wait=may_wait)
        task = asyncio.ensure_future(_when_free(place, work, flow, len(frame)))
        task.add_done_callback(release)
        return task

    async def _in_place(
        self,
        place: FairPlace,
        decode: Callable[[], Any],
        handle: Callable[[Any], Any],
        ending: Ending,
        *,
        may_wait: bool,
    ) -> Any:
        try:
            request = await self._heavy.code(partial(_within, ending.working, decode))
            answer = _within(ending.working, partial(handle, request))
            answer = await self._worked_on(answer, ending)
            if not may_wait:
                return await self._encoded(answer, ending)
        finally:
            place.leave()
        return await self._encoded(answer, ending)

    async def _encoded(self, answer: Any, ending: Ending) -> Any:
        """Wait for an answer, whatever it takes, and encode it in the thread."""
        answer = await self._worked_on(answer, ending)
        while isinstance(answer, asyncio.Future):
            answer = await self._worked_on(await answer, ending)
        answer = ending.settle(answer)
        if answer is None:
            return None
        return await self._heavy.code(partial(ending.encode, answer))

    async def _worked_on(self, answer: Any, ending: Ending) -> Any:
        """What is left of an answer when its work is done: the response, or a future of it."""
        while isinstance(answer, GeneratorType):
            answer = self._scheduler.begin(answer, ending.working)
            if isinstance(answer, Unfinished):
                answer = await answer.future
        return answer


async def _when_free(
    place: FairPlace, work: Callable[[], Awaitable[Any]], flow: Flow, cost: int
) -> Any:
    await place.take(flow, cost)
    return await work()


def _within(working: Working, do: Callable[[], Any]) -> Any:
    with working():
        return do()
