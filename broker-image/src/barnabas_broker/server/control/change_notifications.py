"""Sequential znodes that notify brokers of changes (Kafka's `ZkNodeChangeNotificationListener`)."""

import asyncio
import logging
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol, TypeVar

from barnabas_broker.controller.writes import CHANGE_NOTIFICATION_TTL_MS
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_broker.zk.store import CoordinationStore, Delete, Operation, Watch

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

EXPIRED_AT_ONCE: Final = 100
"""Deletions of old notifications that one change carries, the oldest first."""


class ChangeNotifications:
    """The notifications below one znode, of which this broker has read some. Calls block."""

    def __init__(self, store: CoordinationStore, root: str) -> None:
        self._store = store
        self._root = root
        self._last_read = ""

    def watch(self) -> list[tuple[str, bytes | None]]:
        """Watch for more; returns those since the last call, with their paths."""
        self._store.watch(self._root, Watch.CHILDREN)
        names = self._store.children(self._root)
        paths = [f"{self._root}/{name}" for name in names if name > self._last_read]
        self._last_read = max([*names, self._last_read])
        found = zip(paths, self._store.get_many(paths), strict=True)
        return [(path, node[0]) for path, node in found if node is not None]

    def expired(self, now_ms: int) -> list[Operation]:
        """Deletions of notifications that every broker has read long since."""
        oldest = sorted(self._store.children(self._root))[:EXPIRED_AT_ONCE]
        return [
            Delete(path)
            for path in (f"{self._root}/{name}" for name in oldest)
            if (stat := self._store.exists(path)) is not None
            and now_ms - stat.ctime_ms > CHANGE_NOTIFICATION_TTL_MS
        ]


class NotifiedStore(Protocol):
    """What other brokers change too, kept in memory here."""

    def catch_up(self, *, now_ms: int, everything: bool) -> None:
        """Read what was announced since, or everything. Blocks; raises ZooKeeperError."""


class ChangeNotificationListener:
    """The thread of a store, and the task that has it read what others announce. On the loop.

    The task is down, as `/ready` says, while changes cannot be read.
    """

    def __init__(
        self,
        name: str,
        store: NotifiedStore,
        roots: Collection[str],
        *,
        clock_ms: Callable[[], int],
    ) -> None:
        self._name = name
        self._store = store
        self._roots = roots
        self._clock_ms = clock_ms
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name.replace(" ", "-"))
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._everything = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Read changes from now on, and those since the store was loaded."""
        self._task = background().keep(self._name, self._follow)

    async def stop(self) -> None:
        """End the task and the thread, once it has done what it is at."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    def _run(self, work: Callable[[], Result]) -> "asyncio.Future[Result]":
        """Do something on the store's thread."""
        return self._loop.run_in_executor(self._thread, work)

    def on_znode_change(self, path: str | None) -> None:
        """Another broker wrote to a znode, None for any; called from any thread."""
        if path is None or path in self._roots:
            try:
                self._loop.call_soon_threadsafe(self._note, path is None)
            except RuntimeError:
                logger.debug("the broker is stopping; changes of %s are not read", self._name)

    def _note(self, everything: bool) -> None:
        self._everything |= everything
        self._changed.set()

    async def _follow(self) -> None:
        self._note(True)  # What failed before may have been anything.
        while True:
            await self._changed.wait()
            self._changed.clear()
            everything, self._everything = self._everything, False
            now_ms = self._clock_ms()
            await self._run(partial(self._store.catch_up, now_ms=now_ms, everything=everything))
