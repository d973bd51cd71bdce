"""The controller: works off the queue, runs passes in threads, and resyncs.

A pass is a boundary: an error of one cluster stays with that cluster, and a list that fails in one
namespace concerns that namespace alone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from barnabas_operator.handlers.guard import PassAbortedError
from barnabas_operator.handlers.work_queue import WorkQueue
from barnabas_operator.kube import KubeError
from barnabas_operator.reconcile.reconciler import Found, Key

logger: Final = logging.getLogger(__name__)

# The event loop shows that it lives at least that often.
HEARTBEAT_S: Final = 5.0


class Reporter(Protocol):
    """Receives what happens; called from the event loop."""

    def reconciled(self, key: Key, seconds: float, error: Exception | None) -> None:
        """A pass ended."""
        ...

    def forgotten(self, key: Key) -> None:
        """A cluster is gone."""
        ...

    def namespaces_failed(self, errors: dict[str, KubeError]) -> None:
        """The namespaces that could not be listed in the last resync."""
        ...

    def beat(self, queue: WorkQueue, now: float) -> None:
        """The event loop runs, and this is its queue."""
        ...


class Controller:
    """Runs passes: `work` does one and returns the seconds until the next, `find` lists all keys.

    Both may block and are called in threads. Other methods are called from the event loop only.
    """

    def __init__(
        self,
        work: Callable[[Key], float],
        find: Callable[[], Found],
        reporter: Reporter,
        *,
        resync_s: float,
        queue: WorkQueue | None = None,
    ) -> None:
        self._work = work
        self._find = find
        self._reporter = reporter
        self._resync_s = resync_s
        self._queue = queue or WorkQueue()
        self._woken = asyncio.Event()
        # asyncio's own executor has few threads, and they are shared with the resync.
        self._threads = ThreadPoolExecutor(self._queue.slots.total, "reconcile")

    def add(self, key: Key, *, changed: bool = True) -> None:
        """Have a cluster reconciled now; `changed` as in WorkQueue.add."""
        self._queue.add(key, time.monotonic(), changed=changed)
        self._woken.set()

    def wake(self, namespace: str | None) -> None:
        """Have the clusters of a namespace (None: of all) reconciled: the leadership changed."""
        now = time.monotonic()
        for key in [key for key in self._queue.due if namespace in (None, key.namespace)]:
            self._queue.add(key, now)
        self._woken.set()

    async def end(self, within_s: float) -> bool:
        """After `run`: whether all passes ended in time; each ends at its next call."""
        ended = asyncio.to_thread(self._threads.shutdown, wait=True)
        try:
            async with asyncio.timeout(within_s):
                await ended
        except TimeoutError:
            return False
        return True

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._resync())
                while True:
                    for key in self._queue.get(time.monotonic()):
                        tasks.create_task(self._pass(key))
                    await self._wait()
        finally:
            # Threads end by themselves: each call that they make has a deadline.
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _wait(self) -> None:
        now = time.monotonic()
        self._reporter.beat(self._queue, now)
        due = self._queue.wake_at(now)
        delay = HEARTBEAT_S if due is None else min(HEARTBEAT_S, max(0.0, due - now))
        try:
            async with asyncio.timeout(delay):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()

    async def _pass(self, key: Key) -> None:
        started = time.monotonic()
        error: Exception | None = None
        try:
            again_in = await asyncio.get_running_loop().run_in_executor(
                self._threads, self._work, key
            )
        except KubeError as raised:
            error = raised
            delay = self._queue.failed(key, time.monotonic(), at_least=raised.retry_after)
            text = "Reconciliation failed: cluster=%s %s; retry in %.0f s"
            logger.warning(text, key, error, delay)
        except PassAbortedError as raised:
            error = raised
            delay = self._queue.failed(key, time.monotonic())
            logger.warning("Reconciliation ended: cluster=%s %s", key, error)
        except Exception as raised:
            error = raised
            delay = self._queue.failed(key, time.monotonic())
            logger.exception("Reconciliation failed: cluster=%s; retry in %.0f s", key, delay)
        else:
            self._queue.done(key, time.monotonic(), again_in=again_in)
        self._reporter.reconciled(key, time.monotonic() - started, error)
        self._woken.set()

    async def _resync(self) -> None:
        while True:
            try:
                found = await asyncio.to_thread(self._find)
                self._take_over(found)
            except Exception:
                logger.exception("Resync failed; retry in %.0f s", self._resync_s)
            await asyncio.sleep(self._resync_s)

    def _take_over(self, found: Found) -> None:
        for namespace, error in found.errors.items():
            logger.warning("Listing failed: namespace=%s %s", namespace or "(all)", error)
        self._reporter.namespaces_failed(found.errors)
        # Nothing is known of a namespace that could not be listed, so nothing of it is forgotten.
        for key in self._queue.forget(found.is_gone):
            self._reporter.forgotten(key)
        now = time.monotonic()
        for key in found.keys - self._queue.due.keys() - self._queue.running.keys():
            self._queue.add(key, now, changed=False)
        self._woken.set()
