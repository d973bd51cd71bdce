"""The background tasks of a broker: each is started here, and none ends without a log line.

A task without an awaiter dies silently, and work that relies on it waits for ever. So
its end by an error is logged and counted, and it is begun again after a pause that grows while it
fails. As long as it does, it is down: `/ready` and the metrics say so, with the error. There are
three kinds, each with its own way to begin: work that goes on until it is done or cancelled
(`keep`), work that is done from time to time (`every`), and what belongs to one request, connection
or file and is over soon (`once`), where there is nothing to begin again.

While ZooKeeper or the controller is away, a task that needs them is not down but postponed: that is
logged once, and the task is retried. What lost them has said so itself.

One for each event loop, as tasks are. Lives on it; what is down may be read in any thread.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final
from weakref import WeakKeyDictionary

from barnabas_broker.invariants import violated
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.1
PAUSE_MAX_S: Final = 30.0
"""A task that failed begins again after the first, then after twice the one before, at most the
last. Work that went on for longer than the last did not fail in a row."""


class Background:
    """The tasks of one event loop, and how they are."""

    def __init__(self) -> None:
        #: how often tasks have failed since the start, by name
        self.failures: Counter[str] = Counter()
        # Why tasks are down, and those that wait for ZooKeeper or the controller: several may have
        # one name, and one that is up again says nothing about the others.
        self._down: dict[asyncio.Task[None], str] = {}
        self._postponed: set[asyncio.Task[None]] = set()
        #: those that are kept, for else nothing may hold them
        self.tasks: set[asyncio.Task[None]] = set()
        self._short: set[asyncio.Task[Any]] = set()

    @property
    def down(self) -> dict[str, str]:
        """Why tasks are down, by name; of several that have one name, the first that went down."""
        reasons: dict[str, str] = {}
        others: Counter[str] = Counter()
        for task, why in self._down.copy().items():
            name = task.get_name()
            others[name] += name in reasons
            reasons.setdefault(name, why)
        return {
            name: f"{why} (and {others[name]} more)" if others[name] else why
            for name, why in reasons.items()
        }

    @property
    def postponed(self) -> set[str]:
        """Tasks that wait for ZooKeeper or the controller, by name."""
        return {task.get_name() for task in self._postponed.copy()}

    def keep(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        *,
        pause_max_s: float = PAUSE_MAX_S,
    ) -> asyncio.Task[None]:
        """Do `work` until it returns, beginning it again whenever it fails.

        Several may have one name, which says what they do, not their object.
        """
        return self._begin(name, self._kept(work, pause_max_s))

    def every(
        self, name: str, pause_s: Callable[[], float], work: Callable[[], Awaitable[object]]
    ) -> asyncio.Task[None]:
        """Do `work` again and again, each time after a pause; sooner after it has failed."""
        return self._begin(name, self._repeated(pause_s, work))

    def once(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something that is over soon; an error in it is logged, and it is not done again.

        Many may have one name, which says what they do, not their object: they are counted by it.
        """
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._short.add(task)
        task.add_done_callback(self._over)
        return task

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._short.discard(task)
        error: BaseException | None
        if not task.cancelled():
            error = task.exception()
        elif task.cancelling():
            return  # Cancelled on purpose.
        else:
            error = asyncio.CancelledError("what it waited for was cancelled")
        if error is not None:
            self.failures[task.get_name()] += 1
            log.error("%s failed", task.get_name(), exc_info=error)

    async def _kept(self, work: Callable[[], Awaitable[None]], pause_max_s: float) -> None:
        loop = asyncio.get_running_loop()
        task = _current()
        pause_s = 0.0
        try:
            while True:
                began = loop.time()
                # Down until it has gone on for as long as the pause before it.
                up = loop.call_later(pause_s, self._down.pop, task, None)
                try:
                    await work()
                    return
                except (Exception, asyncio.CancelledError) as error:
                    _raise_if_cancelled(error)
                    lasted_s = loop.time() - began
                    if lasted_s > pause_max_s:
                        pause_s = 0.0
                    if lasted_s > PAUSE_MAX_S:
                        self._postponed.discard(task)
                    pause_s = self._failed(task, error, min(pause_s, pause_max_s / 2))
                finally:
                    up.cancel()
                await asyncio.sleep(pause_s)
        finally:
            self._over_for(task)

    async def _repeated(
        self, pause_s: Callable[[], float], work: Callable[[], Awaitable[object]]
    ) -> None:
        task = _current()
        failed_s = 0.0
        try:
            while True:
                try:
                    await asyncio.sleep(failed_s or pause_s())
                    await work()
                    failed_s = 0.0
                    self._over_for(task)
                except (Exception, asyncio.CancelledError) as error:
                    _raise_if_cancelled(error)
                    failed_s = self._failed(task, error, failed_s)
        finally:
            self._over_for(task)

    def _over_for(self, task: asyncio.Task[None]) -> None:
        self._down.pop(task, None)
        self._postponed.discard(task)

    def _failed(self, task: asyncio.Task[None], error: BaseException, paused_s: float) -> float:
        """Note that a task failed; returns how long it pauses now."""
        name = task.get_name()
        pause_s = min(2 * paused_s, PAUSE_MAX_S) or FIRST_PAUSE_S
        away = _away(error)
        if away is not None:
            level = logging.DEBUG if name in self.postponed else logging.WARNING
            self._postponed.add(task)
            log.log(level, "Task postponed: %s; retried until it succeeds: %s", name, away)
            return pause_s
        self.failures[name] += 1
        self._down[task] = why = str(error) or type(error).__name__
        # A traceback where the error is none that a store or a disk gives.
        known = isinstance(error, KafkaError | OSError)
        log.error(
            "Task failed: %s; restart in %.1f s: %s", name, pause_s, why,
            exc_info=None if known else error,
        )  # fmt: skip
        return pause_s


_OF_LOOPS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Background]] = WeakKeyDictionary()


def background() -> Background:
    """That of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _OF_LOOPS.get(loop)
    if found is None:
        found = _OF_LOOPS[loop] = Background()
    return found


def _away(error: BaseException) -> BaseException | None:
    """What says that ZooKeeper or the controller is away: an error, or what caused it."""
    if isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER:
        return error
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, CoordinationError):
        cause = cause.__cause__
    return cause


def _current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None, violated("work of a task is done in it")
    return task


def _raise_if_cancelled(error: BaseException) -> None:
    """Raise a cancellation of this task; one of a future that it awaited is its error."""
    if isinstance(error, asyncio.CancelledError) and _current().cancelling():
        raise error
