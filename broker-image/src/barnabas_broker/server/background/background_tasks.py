"""The background tasks of a broker.

It flushes, retains, deletes and checkpoints, ends idle connections, and gives memory back.

Decisions are made on the event loop, which owns all partitions; what may block on a disk is run
by a few threads (`background.threads`) and only its outcome comes back. Each task runs at its own
interval and never overlaps itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from barnabas_broker.cluster.failures import chain_isolated, each_isolated, refusal
from barnabas_broker.log import segment_stats
from barnabas_broker.log.batches import CorruptSegmentError
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.files import DataFile
from barnabas_broker.log.health import Reserve
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.producer_state import bound_all
from barnabas_broker.log.removals import Work
from barnabas_broker.log.segment import Segment
from barnabas_broker.server.background import heap
from barnabas_broker.server.process.cooperative_scheduler import CooperativeScheduler, Unfinished
from barnabas_broker.server.process.directory_threads import DirectoryThreads
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_broker.server.transport.limits import producer_ids_max
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

COUNTED_BYTES: Final = 2 << 30
"""How many bytes of uncounted segments each retention check counts."""

TICK_MS: Final = 1000
"""How often to look for files whose delay is over, idle connections and flushes due by time.

Apache's brokers look for flushes every `log.flush.scheduler.interval.ms`, which is never unless it
is set, whatever `flush.ms` says; here that setting only makes it more often.
"""

RECOVERY_POINTS_MS: Final = 5_000
"""How often recovery points are written that a flush has moved. Kafka's brokers write them every
`log.flush.offset.checkpoint.interval.ms` only: one that is killed within its first minute scans all
that it has written."""

PROBE_TIMEOUT_S: Final = 1.0
"""How long volumes are waited for that are asked for their free room."""

GIVE_BACK_MS: Final = 10_000
"""How often unused memory returns to the system. Taking it back costs the same: about a
millisecond for some megabytes."""


class BackgroundTasks:
    """The background tasks of one broker; each round reads `settings` again."""

    def __init__(
        self,
        logs: LogDirectories,
        *,
        watch_clients: Callable[[], Awaitable[None]],
        drop_unused: Callable[[], None],
        settings: Callable[[], BrokerSettings],
        clock_ms: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._watch_clients = watch_clients
        self._drop_unused = drop_unused
        self._settings = settings
        self._clock_ms = clock_ms
        self._thread_count = 0
        self._threads = self.threads
        self._flushing: set[PartitionLog] = set()
        #: whether a flush has moved a recovery point that no checkpoint has yet
        self._recovery_points_moved = False
        self._probes = DirectoryThreads("room", 1)
        self._probing: dict[Path, asyncio.Future[object]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopped = False
        self._scheduler = CooperativeScheduler()

    @property
    def threads(self) -> ThreadPoolExecutor:
        """The threads for work that blocks; others as soon as their number has changed."""
        count = self._settings()[keys.BACKGROUND_THREADS]
        if count != self._thread_count:
            if self._thread_count:
                self._threads.shutdown(wait=False)
            self._thread_count = count
            self._threads = ThreadPoolExecutor(count, thread_name_prefix="background")
        return self._threads

    def start(self) -> None:
        """Begin; the event loop must be running."""
        settings = self._settings()
        # Apart, for what a slow disk delays is not to spare clients that are slow.
        self._every("watching clients", TICK_MS, self._watch_clients)
        self._every("bounding producers", TICK_MS, self._bound_producers)
        self._every("looking for room", TICK_MS, self.look_for_room)
        self._every("removing files", TICK_MS, self._remove_due)
        flush_ms = min(TICK_MS, settings[keys.LOG_FLUSH_SCHEDULER_INTERVAL_MS])
        self._every("looking for flushes", flush_ms, self._flush_due)
        self._every("retention", settings[keys.LOG_RETENTION_CHECK_INTERVAL_MS], self._retain)
        checkpoint_ms = settings[keys.LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS]
        self._every("checkpoints", checkpoint_ms, self._checkpoint)
        points_ms = min(RECOVERY_POINTS_MS, checkpoint_ms)
        self._every("recovery point checkpoints", points_ms, self._checkpoint_flushed)
        marks_ms = settings[keys.REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS]
        self._every("high watermark checkpoints", marks_ms, self._checkpoint_marks)
        self._every("giving memory back", GIVE_BACK_MS, self._give_back)

    async def stop(self) -> None:
        """End every task and wait for what its threads have begun; none begins any more."""
        self._stopped = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._threads.shutdown, wait=True)
        await asyncio.to_thread(self._probes.close)

    def flush_soon(self, partition_log: PartitionLog) -> None:
        """Flush one log in the background: its `flush.messages` is reached."""
        if partition_log not in self._flushing and not self._stopped:
            self._flushing.add(partition_log)
            self._begun(background().once("flushing", self._flush(partition_log)))

    def _every(self, name: str, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        pause_s = max(interval_ms, 1) / 1000
        self._begun(background().every(name, lambda: pause_s, work))

    def _begun(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _in_thread(self, work: Work) -> None:
        await asyncio.get_running_loop().run_in_executor(self.threads, work)

    async def _each_in_thread(self, doing: str, works: Iterable[Work]) -> None:
        """Run each in a thread, whatever one of them raises; they are not run again."""
        for work in works:
            try:
                await self._in_thread(work)
            except Exception as error:  # The boundary between one directory and the others.
                refusal(error, doing, work)

    async def look_for_room(self) -> None:
        """Hold the free room of each log directory against what producers are to leave."""
        settings = self._settings()
        reserve = Reserve(
            keep=settings[keys.BARNABAS_LOG_DIRS_MIN_FREE_BYTES],
            resume=settings[keys.BARNABAS_LOG_DIRS_RESUME_BYTES],
        )
        # A volume that hangs is looked at again when it has answered, the others go on.
        for path, probe in self._logs.probes(reserve):
            if path not in self._probing:
                self._probing[path] = asyncio.wrap_future(self._probes.submit(path, probe))
        if self._probing:
            await asyncio.wait(self._probing.values(), timeout=PROBE_TIMEOUT_S)
        done = [path for path, probing in self._probing.items() if probing.done()]
        each_isolated(done, lambda path: self._probing.pop(path).result(), "Search for room")

    async def _bound_producers(self) -> None:
        """Each partition bounds its own as they write; here it is all of them together."""
        all_logs = self._logs.logs.values()
        states = [each.producers for each in all_logs if each.failure is None and not each.busy]
        forgotten = bound_all(states, producer_ids_max(self._settings()))
        if forgotten:
            log.warning(
                "Forgot %d idle producers: barnabas.producer.ids.max is reached; batches that "
                "they send again may be stored twice",
                forgotten,
            )

    async def _remove_due(self) -> None:
        now_ms = self._clock_ms()
        due: list[Work] = []
        self._logs.remove_due(now_ms, run=due.append)
        await self._each_in_thread("Removal", due)

    async def _flush_due(self) -> None:
        now_ms = self._clock_ms()

        def look(it: PartitionLog) -> None:
            if it.failure is None and not it.busy and it.flush_due(now_ms):
                self.flush_soon(it)

        each_isolated(list(self._logs.logs.values()), look, "Flush", name=lambda it: it.tp)

    async def _flush(self, partition_log: PartitionLog) -> None:
        try:
            if partition_log.failure is None:
                plan = partition_log.flush_plan()
                await self._in_thread(plan.run)
                partition_log.flushed(plan, now_ms=self._clock_ms())
                self._recovery_points_moved = True
        except KafkaError as error:
            # A full directory has said so, and what is not flushed stays due.
            level = logging.DEBUG if partition_log.failure is None else logging.ERROR
            log.log(level, "Failed to flush: partition=%s %s", partition_log.tp, error)
        finally:
            self._flushing.discard(partition_log)

    def retain_soon(self) -> None:
        """Ask retention for what it can give, not waiting for its turn: room is missing.

        Not for the logs that a stop finds no room for: it closes them in threads.
        """
        if not self._stopped:
            self._begun(background().once("retention for room", self._retain()))

    async def _retain(self) -> None:
        retaining = self._scheduler.begin(self._logs.retention(self._clock_ms()))
        if isinstance(retaining, Unfinished):  # There may be ten thousand logs.
            await retaining.future
        await self._remove_due()
        await self._count_segments()

    async def _count_segments(self) -> None:
        """Count what is in segments that came without their numbers, some at each turn."""
        logs = [log for log in self._logs.logs.values() if log.failure is None]
        segments = chain_isolated(
            logs, lambda it: it.segments.uncounted, "Search", name=lambda it: it.tp
        )
        budget = COUNTED_BYTES
        for segment in segments:
            if budget <= 0:
                return
            budget -= segment.size
            work = partial(_count, segment, segment.file)
            await self._each_in_thread("Count of records", (work,))

    async def _checkpoint_marks(self) -> None:
        await self._each_in_thread("High watermark checkpoint", self._logs.mark_work())

    async def _checkpoint_flushed(self) -> None:
        if self._recovery_points_moved:
            await self._checkpoint()

    async def _checkpoint(self) -> None:
        self._recovery_points_moved = False
        await self._each_in_thread("Checkpoint", self._logs.checkpoint_work())

    async def _give_back(self) -> None:
        self._drop_unused()
        await self._in_thread(heap.trim)


def _count(segment: Segment, file: DataFile) -> None:
    """Count a segment that takes no more appends; one that was cut or replaced is left alone."""
    try:
        found = segment_stats.count(file)
    except (OSError, CorruptSegmentError) as error:
        log.warning("Failed to measure a log directory: %s %s", file.path, error)
        return
    if segment.file is file:
        segment.stats = found
