"""Cutting logs in a thread: a cut syncs files and may read much of a segment again.

While a log is being cut nothing else touches it: retention and compaction pass it over, and what
the controller says of it meanwhile, as that this broker leads it or that it is to be deleted, is
put off until the cut has ended (`ReplicaManager`). The event loop does not wait for a disk.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future as ThreadFuture
from functools import partial
from typing import Final

from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.process.directory_threads import DirectoryThreads
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH

THREADS: Final = 2
"""For each log directory; cuts are rare, and come many at a time after a failure."""


class Truncation:
    """The threads that cut. Lives on the event loop."""

    def __init__(self, logs: LogDirectories, *, clock_ms: Callable[[], int]) -> None:
        self._logs = logs
        self._clock_ms = clock_ms
        self._threads = DirectoryThreads("cut", THREADS)

    def cuts_nothing(self, partition: Partition, offset: int) -> bool:
        """Whether a cut leaves the log as it is: a new one, which each follower begins with."""
        log = partition.log
        return (
            offset >= log.log_end_offset and log.latest_epoch == NO_EPOCH and partition.cut is None
        )

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Nothing at or above `offset` stays, nor an epoch that begins there. Raises KafkaError."""
        cut = partial(self._logs.truncate, partition.tp, offset, now_ms=self._clock_ms())
        await self._in_thread(partition, cut)

    async def start_at(self, partition: Partition, offset: int) -> None:
        """Nothing stays, and the log begins at `offset`. Raises KafkaError."""
        now_ms = self._clock_ms()
        cut = partial(self._logs.truncate_fully_at, partition.tp, offset, now_ms=now_ms)
        await self._in_thread(partition, cut)

    async def _in_thread(self, partition: Partition, work: Callable[[], object]) -> None:
        epoch = partition.leader_epoch
        while (before := partition.cut) is not None:  # Of a fetcher that has been replaced.
            await asyncio.wait((asyncio.wrap_future(before),))
            partition.end_cut(before)
            if partition.is_leader or partition.leader_epoch != epoch:
                # What was put off has been done: this cut was for a leader of before.
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        cut: ThreadFuture[object] = self._threads.submit(partition.log.directory.parent, work)
        partition.begin_cut(cut)
        ended = asyncio.wrap_future(cut)

        def over(done: "asyncio.Future[object]") -> None:
            partition.end_cut(cut)
            done.exception()  # Retrieved: the fetcher that asked may have been stopped.

        ended.add_done_callback(over)
        await asyncio.shield(ended)

    def close(self) -> None:
        """Finish what was begun, and end the threads. Blocks."""
        self._threads.close()
