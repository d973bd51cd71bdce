"""Runs compaction beside the event loop: starts cleaner processes, reads their messages, ends them.

The loop chooses and swaps; a process per cleaning reads and writes; threads wait for the process
and for the disk. `log/cleaner` has the rules.
"""

import asyncio
import contextlib
import errno
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import IO, Final, TypeVar, cast

from barnabas_broker.log.cleaner import job
from barnabas_broker.log.cleaner.job import Failed, Finished, GroupReady, Message, Trouble
from barnabas_broker.log.cleaner.manager import (
    CleanerManager,
    NoLongerWantedError,
    Resources,
    Task,
)
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.files import sync_directory
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

CHECK_S: Final = 1
"""How often a cleaning asks whether its log is still there."""

SHORTEST_PAUSE_S: Final = 0.1
"""`log.cleaner.backoff.ms` may be 0; the loop is not to spin."""

MOST_THREADS: Final = 64
"""Threads that wait for cleaner processes; they are made as they are needed."""

COMMAND: Final = (sys.executable, "-P", "-m", "barnabas_broker.log.cleaner.worker")

_T = TypeVar("_T")
_Process = subprocess.Popen[bytes]


class LogCleaner:
    """Cleans the logs of one broker; `start` once, then `stop` once."""

    def __init__(
        self,
        logs: LogDirectories,
        *,
        settings: Callable[[], BrokerSettings],
        clock_ms: Callable[[], int],
    ) -> None:
        self.manager = CleanerManager(logs)
        self._logs = logs
        self._settings = settings
        self._clock_ms = clock_ms
        self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="cleaner")
        self._running: set[asyncio.Task[None]] = set()
        self._processes: set[_Process] = set()
        self._main: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    def start(self) -> None:
        """Begin, unless `log.cleaner.enable` is false; the event loop must be running."""
        if self._settings()[keys.LOG_CLEANER_ENABLE]:
            self._main = background().keep("log cleaner", self._run)

    async def stop(self) -> None:
        """End every cleaning; what was not finished is begun again at the next start."""
        self._stopping.set()
        if self._main is not None:
            self._main.cancel()
            await asyncio.gather(self._main, return_exceptions=True)
        for process in self._processes:
            process.kill()
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.to_thread(self._threads.shutdown, wait=True)

    @property
    def pause_s(self) -> float:
        """How long to wait where there is nothing to do, or after trouble."""
        return max(self._settings()[keys.LOG_CLEANER_BACKOFF_MS] / 1000, SHORTEST_PAUSE_S)

    async def _run(self) -> None:
        while True:
            self._begin()
            if self._running:
                await asyncio.wait(
                    self._running, timeout=self.pause_s, return_when=asyncio.FIRST_COMPLETED
                )
            else:
                await asyncio.sleep(self.pause_s)

    @property
    def resources(self) -> Resources:
        """What the next cleaning may use: its share of what the settings give to all."""
        settings = self._settings()
        count = max(settings[keys.LOG_CLEANER_THREADS], 1)
        return Resources(
            map_bytes=settings[keys.LOG_CLEANER_DEDUPE_BUFFER_SIZE] // count,
            map_load_factor=settings[keys.LOG_CLEANER_IO_BUFFER_LOAD_FACTOR],
            io_bytes=settings[keys.LOG_CLEANER_IO_BUFFER_SIZE] // count,
            bytes_per_second=settings[keys.LOG_CLEANER_IO_MAX_BYTES_PER_SECOND] / count,
        )

    def _begin(self) -> None:
        """Begin as many cleanings as there is need and room for."""
        while len(self._running) < self._settings()[keys.LOG_CLEANER_THREADS]:
            task = self.manager.pick(self._clock_ms(), self.resources)
            if task is None:
                return
            running = background().once("cleaning", self._clean(task))
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    async def _clean(self, task: Task) -> None:
        try:
            await self._run_task(task)
            return
        except NoLongerWantedError as reason:
            self.manager.abandon(task, str(reason))
            return
        except KafkaError as error:
            self.manager.abandon(task, error.message)
        except Exception as error:
            log.exception("Failed to clean: partition=%s", task.tp)
            self.manager.abandon(task, f"{type(error).__name__}: {error}")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), self.pause_s)

    async def _run_task(self, task: Task) -> None:
        process = await self._in_thread(_start)
        self._processes.add(process)
        try:
            if self._stopping.is_set():  # `stop` has killed those it knew of.
                raise NoLongerWantedError("the broker stops")
            await self._in_thread(partial(_send, process, task.job))
            while True:
                message = await self._next_message(process, task)
                if isinstance(message, GroupReady):
                    await self._swap(task, message.replaced)
                elif isinstance(message, Finished):
                    self.manager.done(task, message)
                    await self._in_thread(partial(self._logs.checkpoint_beside, task.tp))
                    return
                elif isinstance(message, Failed):
                    self._failed(task, message)
                    return
        finally:
            process.kill()
            await self._in_thread(process.communicate)
            self._processes.discard(process)

    async def _next_message(self, process: _Process, task: Task) -> Message:
        answers = cast(IO[bytes], process.stdout)
        line = asyncio.get_running_loop().run_in_executor(self._threads, answers.readline)
        while not line.done():
            await asyncio.wait({line}, timeout=CHECK_S)
            try:
                self.manager.check_wanted(task)
            except NoLongerWantedError:
                process.kill()
                await line
                raise
        if not line.result():
            status = await self._in_thread(process.wait)
            raise NoLongerWantedError(f"its process ended with status {status}")
        return job.decode(line.result())

    async def _swap(self, task: Task, replaced: list[int]) -> None:
        now_ms = self._clock_ms()
        removed = self.manager.swap(task, replaced, now_ms)
        # Only when the new names are on the device may the old files go.
        await self._in_thread(partial(sync_directory, task.log.directory))
        self._logs.remove_later(task.log, removed, now_ms)

    def _failed(self, task: Task, failed: Failed) -> None:
        self.manager.check_wanted(task)
        if failed.trouble is Trouble.CORRUPT:
            self.manager.give_up(task, failed.reason)
        elif failed.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, failed.reason)
        else:
            self.manager.give_up(task, failed.reason)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _start() -> _Process:
    """A cleaner process; called in a thread that outlives it, whose end would end it."""
    return subprocess.Popen(  # noqa: S603 (the arguments are our own)
        [*COMMAND, str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _send(process: _Process, order: job.Job) -> None:
    with cast(IO[bytes], process.stdin) as orders:
        orders.write(job.encode(order))
    process.stdin = None
