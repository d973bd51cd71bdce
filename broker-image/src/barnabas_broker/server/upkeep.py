"""What a broker does besides serving: flush, retain, delete, checkpoint, end idle connections.

Decisions are made on the event loop, which owns all partitions; what may block on a disk is run
by a few threads (`background.threads`) and only its outcome comes back. Each task runs at its own
interval and never overlaps itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.server.listener import Listener
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

TICK_MS: Final = 1000
"""How often to look for files whose delay is over, idle connections and flushes due by time."""


class Upkeep:
    """The background tasks of one broker. `settings` is asked anew at each turn."""

    def __init__(
        self,
        logs: LogDirectories,
        listeners: Sequence[Listener],
        *,
        settings: Callable[[], BrokerSettings],
        clock_ms: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._listeners = listeners
        self._settings = settings
        self._clock_ms = clock_ms
        self._thread_count = 0
        self._threads = self.threads
        self._flushing: set[PartitionLog] = set()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def threads(self) -> ThreadPoolExecutor:
        """The threads for work that blocks; others as soon as their number has changed."""
        count = self._settings()[keys.BACKGROUND_THREADS]
        if count != self._thread_count:
            if self._thread_count:
                self._threads.shutdown(wait=False)
            self._thread_count = count
            self._threads = ThreadPoolExecutor(count, thread_name_prefix="upkeep")
        return self._threads

    def start(self) -> None:
        """Begin; the event loop must be running."""
        settings = self._settings()
        self._every(TICK_MS, self._tick)
        self._every(settings[keys.LOG_RETENTION_CHECK_INTERVAL_MS], self._retain)
        self._every(settings[keys.LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS], self._checkpoint)

    async def stop(self) -> None:
        """End every task and wait for what its threads have begun."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._threads.shutdown, wait=True)

    def flush_soon(self, partition_log: PartitionLog) -> None:
        """Flush one log in the background: its `flush.messages` is reached."""
        if partition_log not in self._flushing:
            self._flushing.add(partition_log)
            self._tasks.append(asyncio.get_running_loop().create_task(self._flush(partition_log)))

    def _every(self, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(_repeat(interval_ms, work)))

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self.threads, work)

    async def _tick(self) -> None:
        now = asyncio.get_running_loop().time()
        for listener in self._listeners:
            listener.close_idle(now)
        self._tasks = [task for task in self._tasks if not task.done()]
        now_ms = self._clock_ms()
        due: list[Callable[[], None]] = []
        self._logs.remove_due(now_ms, run=due.append)
        for work in due:
            await self._in_thread(work)
        for partition_log in list(self._logs.logs.values()):
            if partition_log.failure is None and partition_log.flush_due(now_ms):
                self.flush_soon(partition_log)

    async def _flush(self, partition_log: PartitionLog) -> None:
        try:
            if partition_log.failure is None:
                plan = partition_log.flush_plan()
                await self._in_thread(plan.run)
                partition_log.flushed(plan, now_ms=self._clock_ms())
        except KafkaError as error:
            log.error("flushing %s failed: %s", partition_log.tp, error)
        finally:
            self._flushing.discard(partition_log)

    async def _retain(self) -> None:
        due: list[Callable[[], None]] = []
        self._logs.housekeeping(self._clock_ms(), run=due.append)
        for work in due:
            await self._in_thread(work)

    async def _checkpoint(self) -> None:
        for work in self._logs.checkpoint_work():
            await self._in_thread(work)


async def _repeat(interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(interval_ms / 1000)
        try:
            await work()
        except Exception:  # One failed turn must not end the task for the life of the broker.
            log.exception("%s failed; it is tried again at its next turn", work.__name__)
