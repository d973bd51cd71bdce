"""Moves of partitions between log directories as they run beside the event loop (KIP-113).

The loop chooses what is copied next and lets the copy take over; threads read, write and sync.
`log/replica_move` has the steps, and what a crash after each of them leaves. A move ends early,
the copy gone, when it is cancelled, its topic deleted, or its target fails; while the target has no
room it waits. Once the copy has taken over nothing cancels it any more.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.log import names
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.directory import DirectoryState
from barnabas_broker.log.health import Health, StorageError
from barnabas_broker.log.removals import remove_given_up
from barnabas_broker.log.replica_move import SLICE_BYTES, ReplicaMove, Stage
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.server.background.throttle import Throttle
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings.dynamic import MOVE_THROTTLED_RATE, rate_in

log = logging.getLogger(__name__)

CHECK_S: Final = 1.0
"""How often a move that waits looks whether it may go on."""

SMALLEST_SLICE: Final = 64 << 10
"""What is copied at once at least, however low the rate."""

_T = TypeVar("_T")


class _EndedError(Exception):
    """Why a move does not go on."""


class _StoppedError(Exception):
    """The broker stops; the move goes on at its next start."""


class LogMover:
    """The moves of one broker; `start` once, then `stop` once."""

    def __init__(
        self,
        broker_id: int,
        logs: LogDirectories,
        replicas: ReplicaManager,
        *,
        threads: int,
        image: Callable[[], MetadataImage],
        meter: Callable[[int], None],
        clock_ms: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._logs = logs
        self._replicas = replicas
        self._image = image
        self._clock_ms = clock_ms
        self._meter = meter
        self._throttle = Throttle()
        self._slots = asyncio.Semaphore(threads)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="mover")
        self._tasks: dict[ReplicaMove, asyncio.Task[None]] = {}
        self._ends: dict[ReplicaMove, str] = {}
        self._nudge = asyncio.Event()
        self._stopping = False

    def start(self) -> None:
        """Go on with what an earlier process left unfinished; the event loop must be running."""
        unfinished, self._logs.unfinished = self._logs.unfinished, {}

        def resume(tp: TopicPartition) -> None:
            target, path = unfinished[tp]
            if tp in self._logs.logs and self._logs.home_of(tp) is not target:
                log.info(
                    "Resuming a move between log directories: partition=%s to=%s", tp, target.path
                )
                self._begin(tp, target, found=path)
            elif self._logs.has_offline:
                log.warning("Future log kept, its log directory is offline: %s", path)
            else:
                log.info("Deleting a future log without a current log: %s", path)
                self._threads.submit(remove_given_up, path)

        each_isolated(unfinished, resume, "Move between log directories")

    async def stop(self) -> None:
        """End or interrupt every move and wait for its threads."""
        self._stopping = True
        self._nudge.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.to_thread(self._threads.shutdown, wait=True)

    # --- what is asked for -------------------------------------------------------------------

    def alter(self, tp: TopicPartition, path: str) -> None:
        """Have a partition moved to the log directory ``path``, from wherever it is going.

        The one it lies in cancels a move. Returns once the move is begun. Raises KafkaError:
        INVALID_TOPIC_EXCEPTION (its name is too long for a copy), LOG_DIR_NOT_FOUND,
        KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION, and REPLICA_NOT_AVAILABLE where the
        replica is yet to be made: it will be made there (Kafka's ReplicaManager).
        """
        if not names.may_move(tp):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        target = self._logs.find(path)
        if target is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        if self._replicas.is_out_of_reach(tp):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {tp} is offline")
        if self._replicas.get(tp) is None:
            self._logs.prefer(tp, target)
            known = self._image().partition(tp) is not None
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        move = self._logs.moves.get(tp)
        if move is not None and move.stage is not Stage.SWITCHED:
            if move.target is target:
                return
            self._end(move, f"it is to go to {target.path}")
        if self._logs.home_of(tp) is not target:
            self._begin(tp, target)

    def _begin(
        self, tp: TopicPartition, target: DirectoryState, *, found: Path | None = None
    ) -> None:
        move = self._logs.begin_move(tp, target, found=found)
        log.info(
            "Moving replica between log directories: partition=%s from=%s to=%s",
            tp,
            move.home.path,
            target.path,
        )
        before = [task for other, task in self._tasks.items() if other.tp == tp]
        task = background().once("moving a log", self._run(move, before))
        self._tasks[move] = task
        task.add_done_callback(lambda _: self._tasks.pop(move))

    def _end(self, move: ReplicaMove, reason: str) -> None:
        self._ends[move] = reason
        self._logs.ended(move, None, self._clock_ms())
        self._nudge.set()

    # --- a move ------------------------------------------------------------------------------

    async def _run(self, move: ReplicaMove, before: Sequence[asyncio.Task[None]]) -> None:
        # What a move that was ended leaves has the names that this one will need.
        await asyncio.gather(*before)
        try:
            async with self._slots:
                await self._copy(move)
                await self._take_over(move)
            return
        except _StoppedError:
            await self._drop(move, suspend=True)
            return
        except _EndedError as end:
            log.info(
                "Move between log directories cancelled: partition=%s to=%s %s",
                move.tp,
                move.target.path,
                end,
            )
        except (KafkaError, OSError) as error:
            if isinstance(error, OSError):
                move.target.health.failed(error)
            log.error(
                "Move between log directories failed: partition=%s to=%s %s",
                move.tp,
                move.target.path,
                error,
            )
        except Exception:  # One failed move must not go unnoticed, nor leave half of it behind.
            log.exception(
                "Move between log directories failed: partition=%s to=%s", move.tp, move.target.path
            )
        if move.stage is not Stage.SWITCHED:
            await self._drop(move, suspend=False)
        self._ends.pop(move, None)

    def _check(self, move: ReplicaMove) -> None:
        """Raise where the move is not to go on."""
        reason = self._ends.get(move)
        if reason is not None:
            raise _EndedError(reason)
        if self._logs.logs.get(move.tp) is not move.source:
            raise _EndedError("the partition was deleted")
        if self._stopping:
            raise _StoppedError
        if not move.target.health.readable:
            raise _EndedError(f"{move.target.path} is offline: {move.target.health.reason}")
        if move.source.failure is not None:
            raise _EndedError(f"{move.home.path} is offline: {move.source.failure}")

    async def _copy(self, move: ReplicaMove) -> None:
        """Copy until there is little left, and force it to the target's disk."""
        self._check(move)
        if self._logs.has_former_copy(move.tp):
            raise _EndedError("a former copy lies in a log directory that is offline")
        await self._in_thread(lambda: move.open_copy(self._clock_ms()))
        self._check(move)
        if not move.check_found():
            move.restart()
        await self._catch_up(move, throttled=True)
        await self._sync(move)
        await self._catch_up(move, throttled=True)
        await self._sync(move)

    async def _catch_up(self, move: ReplicaMove, *, throttled: bool) -> None:
        while True:
            self._check(move)
            rate = self._rate
            if not move.target.health.writable:
                await self._wait(CHECK_S)
                continue
            if throttled:
                pause_s = self._throttle.pause_s(asyncio.get_running_loop().time(), rate)
                if pause_s > 0:
                    await self._wait(min(pause_s, CHECK_S))
                    continue
            part = move.next_part(min(SLICE_BYTES, max(rate, SMALLEST_SLICE)))
            if part is None:
                return
            take = partial(move.take, part, now_ms=self._clock_ms())
            try:
                taken = await self._in_thread(take)
                self._throttle.took(taken)
                self._meter(taken)
            except StorageError:
                if move.target.health.state is not Health.FULL:
                    raise
                # There may be room later.

    async def _sync(self, move: ReplicaMove) -> None:
        copy = move.opened()
        plan = copy.flush_plan()
        await self._in_thread(plan.run)
        copy.flushed(plan, now_ms=self._clock_ms())

    async def _take_over(self, move: ReplicaMove) -> None:
        self._check(move)
        await self._in_thread(move.install)
        while True:
            await self._catch_up(move, throttled=False)
            if move.source.busy:  # It is being cut: what is to go is still in it, and in the copy.
                await self._wait(CHECK_S)
            elif move.try_switch(self._clock_ms()):
                break
        self._logs.switched(move)
        partition = self._replicas.get(move.tp)
        if partition is not None:
            partition.take_log(move.opened())
        await self._retire(move)

    async def _retire(self, move: ReplicaMove) -> None:
        """The copy serves; the source goes once all it has is on the copy's disk."""
        removed = None
        try:
            await self._sync(move)
            await self._in_thread(partial(self._logs.checkpoint_surely, move.target))
            await self._in_thread(move.note_switched)
            removed = await self._retire_source(move)
            if removed is not None:
                await self._in_thread(move.forget)
                await self._in_thread(self._logs.checkpoint_work_of(move.home))
                log.info(
                    "Moved replica between log directories: partition=%s from=%s to=%s",
                    move.tp,
                    move.home.path,
                    move.target.path,
                )
        except FileNotFoundError:
            log.info(
                "Move between log directories ended, the topic is deleted: partition=%s", move.tp
            )
        except (KafkaError, OSError) as error:
            if isinstance(error, OSError):
                move.target.health.failed(error)
            self._logs.keep_former_copy(move.tp)
            log.error(
                "Failed to delete the old log of a moved replica: partition=%s %s", move.tp, error
            )
        finally:
            self._logs.ended(move, removed, self._clock_ms())

    async def _retire_source(self, move: ReplicaMove) -> Path | None:
        try:
            removed = await self._in_thread(move.retire)
        except OSError as error:
            move.home.health.failed(error)
            self._logs.keep_former_copy(move.tp)
            log.error(
                "Failed to delete the old log of a moved replica: partition=%s log.dir=%s %s",
                move.tp,
                move.home.path,
                error,
            )
            return None
        if removed is not None:
            move.release_source(removed)
        return removed

    async def _drop(self, move: ReplicaMove, *, suspend: bool) -> None:
        removed = None
        try:
            if suspend:
                await self._in_thread(move.suspend)
            else:
                removed = await self._in_thread(move.drop_copy)
        except OSError as error:
            move.target.health.failed(error)
            log.error("Failed to delete a future log: partition=%s %s", move.tp, error)
        self._logs.ended(move, removed, self._clock_ms())

    # --- pace --------------------------------------------------------------------------------

    @property
    def _rate(self) -> int:
        """Bytes per second for all moves together, as it is now."""
        configs = self._image().broker_configs.get(str(self._broker_id), {})
        return rate_in(configs, MOVE_THROTTLED_RATE)

    async def _wait(self, seconds: float) -> None:
        """Wait, or until a move is to end."""
        self._nudge.clear()
        try:
            await asyncio.wait_for(self._nudge.wait(), seconds)
        except TimeoutError:
            pass

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
