"""The one thread that the controller and its store live in, and what the event loop sees of them.

Calls to the store block, on a disk or on an ensemble that may be away, so the loop makes none: it
hands work over and gets a Future. The thread owns the Controller; what the loop may read at any
time is `image` and `settings`, which change on the loop only. The thread publishes an image by
having the loop take it and waits until the replicas have done what it says, so that when the
Future of a request is done, its topics have their logs and every handler knows of them.

Requests of clients wait in a queue of their own, of which one at a time is handed over: changes of
in-sync replicas, of brokers and all else that the cluster itself causes wait for one of them at
most, and clients for each other in turns. Nothing needs an order between the two: a request that
is handed over later is one that came later. One whose client has left before its turn is dropped:
a client that timed out asks again, and while ZooKeeper is away the queue would only grow.

There is one way for embedded and shared coordination data (docs/adr/0006).
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from barnabas_broker.cluster.image import NO_CONTROLLER, MetadataImage
from barnabas_broker.controller.commands import Failures
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import ElectionsRetried
from barnabas_broker.controller.target_state import TargetState
from barnabas_broker.server.process.cooperative_scheduler import (
    CooperativeScheduler,
    Unfinished,
    Work,
)
from barnabas_broker.server.process.fair_queue import FairQueue
from barnabas_broker.server.process.repeated_failure import RepeatedFailure
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_zookeeper.errors import ZooKeeperError

log = logging.getLogger(__name__)

RETRY_FIRST_S: Final = 0.05
RETRY_LONGEST_S: Final = 30.0
"""Reading of coordination data that fails is retried for ever, ever later up to so long."""

APPLYING_SLICE_S: Final = 0.005
"""How long one time slice of an image takes. A broker that is busy gives one in each iteration of
its loop, and the controller waits for all of them."""

Result = TypeVar("Result")
Answer = TypeVar("Answer")
OnImage = Callable[[MetadataImage, MetadataImage], Work[Failures]]
OnView = Callable[[TargetState | None, int], Failures]


LEFT_MAX: Final = 100
"""Requests whose clients have left that stay in the queue, and as many as there are others."""


@dataclass(slots=True)
class _Asked:
    """What a client asks for; `work` is None once it is handed over, or the client has left."""

    work: Callable[[Controller], Any] | None
    done: "asyncio.Future[Any]"


class ControllerThread:
    """Runs a Controller beside an event loop. `clock_ms` is the wall clock."""

    def __init__(
        self,
        controller: Controller,
        *,
        loop: asyncio.AbstractEventLoop,
        clock_ms: Callable[[], int],
    ) -> None:
        self.image = controller.image
        self.settings: BrokerSettings = controller.settings
        self.shared = controller.shared
        self.metadata_received: asyncio.Future[None] = loop.create_future()
        """Done when the first metadata from a controller has been published."""
        self._controller = controller
        self._loop = loop
        self._clock_ms = clock_ms
        self._on_image: OnImage = _do_nothing
        self._on_view: OnView = _no_view
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="controller")
        self._changed_paths: set[str | None] = set()
        self._lock = threading.Lock()  # Over `_changed_paths`: the store's threads add, ours takes.
        self._stopped = False
        self._of_clients: FairQueue[_Asked] = FairQueue()
        self._left = 0
        self._client_at_work = False
        self._away = RepeatedFailure()
        self._scheduler = CooperativeScheduler(time_slice_s=APPLYING_SLICE_S)
        # Apart: elections that the store refuses for long must not delay what is to be read.
        self._rereading = _Retry(lambda: self.on_znode_change(None))
        self._settling = _Retry(lambda: self._submit(self._settle_refused))
        controller.add_listener(self._publish)
        self._note_metadata()

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration, -1 before there is one (KIP-380)."""
        return self._controller.member.epochs.broker_epoch

    def attach(self, on_image: OnImage, on_view: OnView | None = None) -> None:
        """Have `on_image(old, new)` run, on the loop, for every image from now on.

        It runs in time slices, between which the loop serves requests, and to its end before the
        next image is published: the controller's thread waits for it.

        After it, `on_view(view, epoch)` gets the target state that the controller sends to all
        brokers, None for nothing, and the controller epoch.
        """
        self._on_image = on_image
        if on_view is not None:
            self._on_view = on_view

    def run(self, work: Callable[[Controller], Result]) -> "asyncio.Future[Result]":
        """Do `work` in the thread, after all that was handed over before; called on the loop."""
        return self._loop.run_in_executor(self._thread, self._do, work)

    def ask(
        self, work: Callable[[Controller], Result], answer: Callable[[Result], Answer]
    ) -> "asyncio.Future[Answer]":
        """Do `work` in the thread and make the answer of its result, on the loop."""
        return self._answered(self.run(work), answer)

    def ask_for_client(
        self,
        work: Callable[[Controller], Result],
        answer: Callable[[Result], Answer],
        *,
        client: Hashable,
    ) -> "asyncio.Future[Answer]":
        """As `ask`, after what the cluster itself has handed over, and in turns with other clients.

        What one client asks for is done in its order.
        """
        asked = _Asked(work, self._loop.create_future())
        answered = self._answered(asked.done, answer)
        answered.add_done_callback(partial(self._drop_if_left, asked))
        self._of_clients.push(asked, client, 1)
        if not self._client_at_work:
            self._serve_client()
        return answered

    def _drop_if_left(self, asked: _Asked, answered: "asyncio.Future[Any]") -> None:
        """Keep nothing of a request that no client waits for, unless it has been handed over."""
        if answered.cancelled() and asked.work is not None:
            asked.work = None
            self._left += 1
            if self._left > max(LEFT_MAX, len(self._of_clients) // 2):
                self._left = 0
                self._of_clients.remove(lambda each: each.work is None)

    def _answered(
        self, result: "asyncio.Future[Result]", answer: Callable[[Result], Answer]
    ) -> "asyncio.Future[Answer]":
        answered: asyncio.Future[Answer] = self._loop.create_future()

        def finish(done: "asyncio.Future[Result]") -> None:
            if answered.cancelled():
                return
            try:
                answered.set_result(answer(done.result()))
            except Exception as error:  # The handler's boundary is where the Future is awaited.
                answered.set_exception(error)

        result.add_done_callback(finish)
        return answered

    def _serve_client(self) -> None:
        """Hand over the next request of a client, and the one after it when it is done."""
        self._client_at_work = False
        while self._of_clients and not self._client_at_work:
            asked = self._of_clients.pop()
            work, asked.work = asked.work, None
            if work is None:
                self._left = max(0, self._left - 1)
            else:
                self._client_at_work = True
                self._hand_over(work, asked.done)

    def _hand_over(self, work: Callable[[Controller], Any], done: "asyncio.Future[Any]") -> None:
        def finish(worked: "asyncio.Future[Any]") -> None:
            self._serve_client()
            try:
                done.set_result(worked.result())
            except Exception as error:  # That of the work, which its client is answered with.
                done.set_exception(error)

        try:
            self.run(work).add_done_callback(finish)
        except RuntimeError:  # The broker is stopping: another one is the controller soon.
            done.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
            self._loop.call_soon(self._serve_client)

    def on_znode_change(self, path: str | None) -> None:
        """Another broker wrote to a znode, None for any; called from any thread."""
        with self._lock:
            waiting = bool(self._changed_paths)
            self._changed_paths.add(path)
        if not waiting:
            self._submit(self._catch_up)

    async def stop(self) -> None:
        """Finish what was handed over and end the thread; clients that wait for it are refused."""
        self._stopped = True
        self._rereading.cancel()
        self._settling.cancel()
        await asyncio.to_thread(self._thread.shutdown, wait=True)
        self._controller.remove_listener(self._publish)

    def _note_metadata(self) -> None:
        if self.image.controller_id != NO_CONTROLLER and not self.metadata_received.done():
            self.metadata_received.set_result(None)

    # --- in the thread

    def _do(self, work: Callable[[Controller], Result]) -> Result:
        try:
            return work(self._controller)
        finally:
            if self._controller.stale and not self._rereading.failed_in_a_row:
                self.on_znode_change(None)
            elif self._controller.unsettled:
                self._retry_later(self._settling)

    def _publish(self, old: MetadataImage, new: MetadataImage) -> Failures:
        """Have the loop take the next image; returns what the replicas could not do."""
        settings = self._controller.settings
        view, epoch = self._controller.view, self._controller.epoch
        taken: ThreadFuture[Failures] = ThreadFuture()

        def take() -> None:
            self.image, self.settings = new, settings
            self._note_metadata()
            try:
                applied = self._scheduler.begin(self._apply(old, new, view, epoch))
            except BaseException as error:
                taken.set_exception(error)
                raise
            if isinstance(applied, Unfinished):
                applied.future.add_done_callback(pass_on)
            else:
                taken.set_result(applied)

        def pass_on(applied: "asyncio.Future[Failures]") -> None:
            if (error := applied.exception()) is not None:
                taken.set_exception(error)
                raise error  # The loop ends the process where an invariant is violated.
            taken.set_result(applied.result())

        self._loop.call_soon_threadsafe(take)
        return taken.result()

    def _apply(
        self, old: MetadataImage, new: MetadataImage, view: TargetState | None, epoch: int
    ) -> Work[Failures]:
        try:
            failures = yield from self._on_image(old, new)
        except Exception:  # What this broker cannot apply, the others are to have all the same.
            self._on_view(view, epoch)
            raise
        return {**failures, **self._on_view(view, epoch)}

    def _submit(self, work: Callable[[], None]) -> None:
        try:
            self._thread.submit(work)
        except RuntimeError:
            log.debug("the broker is stopping; changes of other brokers are ignored")

    def _catch_up(self) -> None:
        with self._lock:
            changed, self._changed_paths = self._changed_paths, set()
        paths = None if None in changed else {path for path in changed if path is not None}
        failed = self._fails(lambda: self._controller.catch_up(paths, now_ms=self._clock_ms()))
        self._schedule_retries(failed=failed)

    def _settle_refused(self) -> None:
        if self._controller.unsettled:
            now_ms = self._clock_ms()
            failed = self._fails(
                lambda: self._controller.active.process(ElectionsRetried(), now_ms=now_ms)
            )
            self._schedule_retries(failed=failed)

    def _schedule_retries(self, *, failed: bool) -> None:
        """Schedule what failed again: no event would cause it."""
        for again, retry in (
            (failed or self._controller.stale, self._rereading),
            (self._controller.unsettled, self._settling),
        ):
            if again:
                self._retry_later(retry)
            else:
                retry.failed_in_a_row = 0

    def _fails(self, work: Callable[[], None]) -> bool:
        """Whether work fails."""
        try:
            work()
        except CoordinationError as error:
            # Everything is read again when the connection is back, or when it was not lost at all.
            log.log(self._away.failed(), "Failed to read changes from ZooKeeper: %s", error)
        except (ZooKeeperError, KafkaError) as error:
            log.warning("ZooKeeper data changed while it was read: %s", error)
        except Exception:  # A failed catch-up is logged and retried.
            log.exception("Failed to read changes from ZooKeeper")
        else:
            self._away.over()
            return False
        return True

    def _retry_later(self, retry: "_Retry") -> None:
        """Have what failed done again, later each time."""
        try:
            self._loop.call_soon_threadsafe(self._set_retry, retry)
        except RuntimeError:
            log.debug("the broker is stopping; what failed is not tried again")

    # --- on the loop

    def _set_retry(self, retry: "_Retry") -> None:
        if not self._stopped:
            retry.set(self._loop)


class _Retry:
    """Something that is tried again, ever later while it fails. Its timer is the loop's."""

    def __init__(self, again: Callable[[], None]) -> None:
        self.failed_in_a_row = 0
        self._again = again
        self._timer: asyncio.TimerHandle | None = None

    def set(self, loop: asyncio.AbstractEventLoop) -> None:
        """It has failed."""
        if self._timer is None:
            delay_s = min(RETRY_LONGEST_S, RETRY_FIRST_S * 2 ** min(self.failed_in_a_row, 20))
            self.failed_in_a_row += 1
            self._timer = loop.call_later(delay_s, self._now)

    def cancel(self) -> None:
        """It is not tried any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _now(self) -> None:
        self._timer = None
        self._again()


def _do_nothing(_old: MetadataImage, _new: MetadataImage) -> Work[Failures]:
    yield from ()
    return {}


def _no_view(_view: TargetState | None, _epoch: int) -> Failures:
    return {}
