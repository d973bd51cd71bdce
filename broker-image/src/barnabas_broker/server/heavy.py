"""Work of requests that would keep the event loop from everybody else, done in threads.

Decompressing tens of megabytes is the case: the codecs release the interpreter lock, so that the
loop goes on beside them. A request that waits for a thread holds a copy of what it brought, as the
buffer it arrived in is needed for the next; those copies are bounded.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from barnabas_kafka.errors import ErrorCode, KafkaError

THREADS: Final = 1
"""It may hold the records of a whole batch, decompressed; two would keep the loop from its core."""

WAITING_BYTES_MAX: Final = 64 << 20
"""Copies of requests that wait, in all; one request may always wait, however large."""

T = TypeVar("T")


class HeavyWork:
    """The threads and the waiting room of one broker; used on its event loop."""

    def __init__(self, *, waiting_bytes_max: int = WAITING_BYTES_MAX) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="heavy")
        self._waiting_bytes_max = waiting_bytes_max
        self.waiting_bytes = 0

    def reserve(self, size: int) -> None:
        """Take room for a copy of `size` bytes; raises KafkaError, which a client may retry."""
        if self.waiting_bytes and self.waiting_bytes + size > self._waiting_bytes_max:
            reason = "the broker has more large compressed batches to look at than it has room for"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, reason)
        self.waiting_bytes += size

    def release(self, size: int) -> None:
        """Give room back."""
        self.waiting_bytes -= size

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Do `work` in a thread."""
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Begin nothing any more and wait for what runs; blocks."""
        self._threads.shutdown(wait=True, cancel_futures=True)
