"""Work of requests that would block the event loop, done in threads.

Decompressing tens of megabytes is the case: the codecs release the interpreter lock, so that the
loop goes on beside them. A request that waits for the thread holds a copy of what it brought, as
the buffer it arrived in is needed for the next; those copies are bounded. The thread's time is
shared between flows (`server.process.fair_queue`) by what the work may come to, so that two
kilobytes that inflate to sixty million cannot put off what others send. Decoding and encoding large
requests has a thread of its own: it takes milliseconds, and a request for metadata never waits for
a batch.
"""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from barnabas_broker.invariants import violated
from barnabas_broker.server.process.fair_queue import FairQueue, Flow
from barnabas_kafka.errors import ErrorCode, KafkaError

THREADS: Final = 1
"""It may hold the records of a whole batch, decompressed; two would keep the loop from its core."""

WAITING_BYTES_MAX: Final = 64 << 20
"""Copies of requests that wait, in all; one request may always wait, however large."""

LEAST_BYTES: Final = 16 << 10
"""What a request that waits counts for at least: a task and what it refers to."""

SHARE: Final = 3
"""One principal at one address may hold so many times the room that is left: alone, three
quarters of it."""

T = TypeVar("T")


class OffloadPool:
    """The threads and the waiting room of one broker; used on its event loop."""

    def __init__(
        self, *, waiting_bytes_max: int = WAITING_BYTES_MAX, least_bytes: int = LEAST_BYTES
    ) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="heavy")
        self._coding = ThreadPoolExecutor(1, thread_name_prefix="coding")
        self._waiting_bytes_max = waiting_bytes_max
        self._least_bytes = least_bytes
        self.waiting_bytes = 0
        self._held: dict[Hashable, int] = {}
        self._line: FairQueue[tuple[Callable[[], Any], asyncio.Future[Any]]] = FairQueue()
        self._working = 0

    @property
    def in_line(self) -> int:
        """Pieces of work that wait for the thread."""
        return len(self._line)

    def reserve(self, size: int, flow: Flow) -> Callable[[object], None]:
        """Take room for a copy of `size` bytes; what is returned gives it back.

        Raises KafkaError, which a client may retry.
        """
        size = max(size, self._least_bytes)
        holder = (flow.principal, flow.address)
        held = self._held.get(holder, 0) + size
        left = self._waiting_bytes_max - self.waiting_bytes - size
        if self.waiting_bytes and (left < 0 or held > SHARE * left):
            reason = "the broker has more large requests in work than it has memory for"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, reason)
        self.waiting_bytes += size
        self._held[holder] = held

        return partial(self._release, size, holder)

    def _release(self, size: int, holder: Hashable, _: object) -> None:
        self.waiting_bytes -= size
        self._held[holder] -= size
        if not self._held[holder]:
            del self._held[holder]

    def run(self, work: Callable[[], T], *, flow: Flow, cost: int) -> asyncio.Future[T]:
        """Do `work` in the thread when its flow's turn has come; `cost` is what it may come to."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._line.push((work, future), flow, max(cost, 1))
        self._begin()
        return future

    def code(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Decode or encode in the thread for that, in the order of coming."""
        return asyncio.get_running_loop().run_in_executor(self._coding, work)

    def close(self) -> None:
        """Begin nothing any more and wait for what runs; blocks."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._coding.shutdown(wait=True, cancel_futures=True)

    def _begin(self) -> None:
        while self._line and self._working < THREADS:
            work, future = self._line.pop()
            if future.done():  # Cancelled.
                continue
            try:
                doing = asyncio.get_running_loop().run_in_executor(self._threads, work)
            except RuntimeError:  # The broker stops, and begins nothing any more.
                future.cancel()
                continue
            self._working += 1
            assert self._working <= THREADS, violated("no more is begun than there are threads")
            doing.add_done_callback(partial(self._done, future))

    def _done(self, future: "asyncio.Future[Any]", doing: "asyncio.Future[Any]") -> None:
        self._working -= 1
        assert self._working >= 0, violated("each work ends once")
        if doing.cancelled():
            future.cancel()
        elif (error := doing.exception()) is not None:
            if not future.done():
                future.set_exception(error)
        elif not future.done():
            future.set_result(doing.result())
        self._begin()


class FairPlace:
    """A place for one at a time, which flows get by turns; used on one event loop."""

    def __init__(self) -> None:
        self._line: FairQueue[asyncio.Future[None]] = FairQueue()
        self._taken = False

    async def take(self, flow: Flow, cost: int) -> None:
        """Wait for the place; `leave` frees it."""
        if not self._taken:
            self._taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.push(turn, flow, cost)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # It has become ours meanwhile.
                self.leave()
            raise

    def leave(self) -> None:
        """Let the next one in."""
        while self._line:
            turn = self._line.pop()
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False
