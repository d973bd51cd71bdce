"""A coordinator as the broker runs it: logs, waiting clients and timers around pure cores.

Each partition of an internal topic that this broker leads has a shard. It is loaded from the log
when leadership begins and dropped when it ends. A request is handled in one step on the event loop:
its records are appended as one batch and replayed, and its responses are sent once all records that
the shard has appended are committed, as with acks=all. Decisions are the core's.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.hashing import partition_of
from barnabas_broker.coordinator.loading import Kind, read_back
from barnabas_broker.coordinator.results import CoordinatorResult, Producer
from barnabas_broker.coordinator.waiting import Awaited, Parked
from barnabas_broker.replica.delayed_produce import ALL_IN_SYNC, DelayedProduce, Uncounted
from barnabas_broker.replica.partition import Partition
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from barnabas_kafka.records.batch import CorruptBatch
from barnabas_kafka.records.builder import build_batch, plain_batch_of
from barnabas_kafka.records.compression import Codec

log = logging.getLogger(__name__)

_WAITING = (Parked, Awaited)

NO_PRODUCER = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

R = TypeVar("R")


class Core(Protocol[R]):
    """A shard: the coordinator's state of one partition."""

    @property
    def next_ms(self) -> int | None:
        """A time on the steady clock before which `tick` has nothing to do; None without timers."""
        ...

    def tick(self, now_ms: int) -> CoordinatorResult[R] | None:
        """Run the first timer that is due; None when none is."""
        ...

    def replay(self, record: R, now_ms: int) -> None:
        """Apply a record to the state."""
        ...

    def loaded(self, now_ms: int) -> Iterator[CoordinatorResult[R]]:
        """What is to be done once everything is read back."""
        ...

    def resign(self, now_ms: int) -> CoordinatorResult[R]:
        """Answer all waiting requests with NOT_COORDINATOR."""
        ...


S = TypeVar("S", bound=Core[Any])


class Written(Kind[R], Protocol[R]):
    """How records look in the log, in both directions."""

    def encode(self, record: R) -> tuple[bytes, bytes | None]:
        """The key and the value of a record."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How the log of an internal topic is read and written."""

    load_buffer_bytes: int
    timeout_ms: int
    """How long an answer may wait for its records to count."""
    codec: Codec = Codec.NONE


FIRST_RETRY_S: Final = 0.1
RETRY_MAX_S: Final = 30.0
"""A load that failed is retried after the first delay, then after twice the one before, at most
the last."""

WAKE_RETRY_S: Final = 1.0
"""When what is due and failed is tried again."""


class Unloaded(NamedTuple):
    """A partition that is being loaded, and the last error, which is empty on the first attempt."""

    tp: TopicPartition
    reason: str


@dataclass(slots=True)
class Held(Generic[S]):
    """A shard, its partition, and the timer that wakes it."""

    partition: Partition
    shard: S
    end: int = 0  # The offset after the last record appended here.
    loading: "asyncio.Task[None] | None" = None
    load_error: str = ""
    """Why the last attempt to load it failed."""
    wake: asyncio.TimerHandle | None = None
    wake_ms: int = field(default=0)


class Runtime(Generic[S, R]):
    """The shards of one internal topic on this broker. Used on the event loop only.

    `leader` gives the partition if it is led here, and raises KafkaError otherwise; `clock_ms` is
    the wall clock. `carry_out` performs the orders of a result once its records are committed.
    """

    def __init__(
        self,
        topic: str,
        kind: Written[R],
        *,
        leader: Callable[[TopicPartition], Partition],
        limits: Callable[[], Limits],
        new_shard: Callable[[], S],
        carry_out: Callable[[Held[S], object], None] = lambda _held, _order: None,
        clock_ms: Callable[[], int],
    ) -> None:
        self.topic = topic
        self._kind = kind
        self._leader = leader
        self._limits = limits
        self._new_shard = new_shard
        self._carry_out = carry_out
        self._clock_ms = clock_ms
        self._loop = asyncio.get_running_loop()
        self._held: dict[int, Held[S]] = {}
        self._partition_count = 0
        self._image: MetadataImage | None = None  # None once stopped.
        self._retry: asyncio.TimerHandle | None = None

    # --- life

    def stop(self) -> None:
        """Answer all waiting clients with an error, and do nothing more."""
        self._image = None
        each_isolated(list(self._held), self._resign, "Resignation", name=self._tp)

    def on_image(self, new: MetadataImage) -> None:
        """Load and drop shards as leadership changes.

        Called when the replicas have applied the image.
        """
        self._image = new
        topic = new.topic(self.topic)
        self._partition_count = 0 if topic is None else len(topic.partitions)
        led: dict[int, Partition] = {}

        def look(index: int) -> None:
            with suppress(KafkaError):  # Not led here.
                led[index] = self._leader(self._tp(index))

        def resign(index: int) -> None:
            if led.get(index) is not self._held[index].partition:
                self._resign(index)

        def take_up(index: int) -> None:
            if index not in self._held:
                self._take_up(index, led[index])

        failed = each_isolated(range(self._partition_count), look, "Look-up", name=self._tp)
        failed += each_isolated(list(self._held), resign, "Resignation", name=self._tp)
        failed += each_isolated(led, take_up, "Loading", name=self._tp)
        if failed and self._retry is None:
            self._retry = self._loop.call_later(WAKE_RETRY_S, self._retry_image)

    def _tp(self, index: int) -> TopicPartition:
        return TopicPartition(self.topic, index)

    def _retry_image(self) -> None:
        self._retry = None
        if self._image is not None:
            self.on_image(self._image)

    # --- questions

    def partition_of(self, key: str) -> int | None:
        """The partition whose leader coordinates a key; None while the topic is missing."""
        return partition_of(key, self._partition_count) if self._partition_count else None

    def ask(
        self,
        key: str,
        step: Callable[[S, Awaited | Parked, int], CoordinatorResult[R]],
        refuse: Callable[[KafkaError], object] | None = None,
        waiter: Parked | None = None,
    ) -> Any:
        """Run a step on the key's shard; return its response, or the waiter for it.

        That is `waiter`, or a Future where there is none.
        Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR. The Future fails with a
        KafkaError where what was decided could not be made to count: REQUEST_TIMED_OUT,
        KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER or NOT_ENOUGH_REPLICAS_AFTER_APPEND; with
        `refuse` it brings what that makes of the error.
        """
        held = self.held(key)
        waiting: Awaited | Parked | None = waiter
        if waiting is None:
            waiting = Awaited(loop=self._loop)
            waiting.refuse = refuse
        self.perform(held, step(held.shard, waiting, self._clock_ms()))
        return waiting.result() if waiting.done() else waiting

    def held(self, key: str) -> Held[S]:
        """The shard of a key and what belongs to it; raises as `ask` does."""
        count = self._partition_count
        held = self._held.get(partition_of(key, count)) if count else None
        if held is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if held.loading is not None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return held

    def prompt(self, key: str) -> Held[S] | None:
        """The key's shard if its records are committed once appended, uncompressed; else None."""
        index = self.partition_of(key)
        held = None if index is None else self._held.get(index)
        if (
            held is None
            or held.loading is not None
            or not held.partition.counts_at_once(ALL_IN_SYNC)
            or held.end > held.partition.log.high_watermark
            or self._limits().codec is not Codec.NONE
        ):
            return None
        return held

    @property
    def shards(self) -> Sequence[S]:
        """All loaded shards on this broker."""
        return [held.shard for held in self._held.values() if held.loading is None]

    @property
    def all_shards(self) -> Sequence[S]:
        """All shards on this broker, also those that are still being loaded."""
        return [held.shard for held in self._held.values()]

    @property
    def batch_bytes_max(self) -> int:
        """How large a batch the log of some shard takes; 0 where there is none."""
        held = self._held.values()
        return max((it.partition.rules.log_config.max_message_bytes for it in held), default=0)

    @property
    def loading(self) -> bool:
        """Whether some shards are still being read back."""
        return any(held.loading is not None for held in self._held.values())

    @property
    def unloaded(self) -> Sequence[Unloaded]:
        """The partitions that are still being loaded."""
        return [
            Unloaded(held.partition.tp, held.load_error)
            for held in self._held.values()
            if held.loading is not None
        ]

    def settled(self, key: str) -> "asyncio.Future[None] | None":
        """When everything that the key's shard shows is committed; None if it is already.

        Raises as `ask` does.
        """
        held = self.held(key)
        if held.end <= held.partition.log.high_watermark:
            return None
        return self._await_count(held, lambda _code: None)

    # --- shards

    def _take_up(self, index: int, partition: Partition) -> None:
        held = Held(partition, self._new_shard())
        held.end = partition.log.log_end_offset
        self._held[index] = held
        if partition.log.log_start_offset < held.end:
            held.loading = self._loop.create_task(self._load(held))

    async def _load(self, held: Held[S]) -> None:
        """Load a partition, retrying until it succeeds or the broker no longer leads it.

        Until then its coordinator is unavailable: to serve part of the log would be worse.
        """
        delay_s = FIRST_RETRY_S
        while True:
            try:
                await self._load_once(held)
                return
            except Exception as error:  # The boundary between one attempt and the next.
                self._note_failed_load(held, error, delay_s)
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, RETRY_MAX_S)
            held.shard.resign(self._clock_ms())  # No client waits for it; its memory is given back.
            held.shard = self._new_shard()

    async def _load_once(self, held: Held[S]) -> None:
        began_ms = self._clock_ms()
        tp, loading = held.partition.tp, held.loading
        replay = held.shard.replay
        steps = read_back(
            held.partition.log,
            self._kind,
            lambda record: replay(record, began_ms),
            buffer_bytes=self._limits().load_buffer_bytes,
        )
        await asyncio.sleep(0)
        for _ in steps:
            await asyncio.sleep(0)
        held.loading = None
        held.end = held.partition.log.log_end_offset
        now_ms = self._clock_ms()
        try:
            for result in held.shard.loaded(now_ms):
                self.perform(held, result)
            self.time(held)
        except Exception:
            _stop_loading(held)  # Which `perform` may have begun; here it is retried anyway.
            held.loading = loading
            raise
        held.load_error = ""
        log.info("Finished loading: partition=%s in %d ms", tp, now_ms - began_ms)

    def load_again(self, held: Held[S]) -> None:
        """Drop a shard that differs from its log, and load it again.

        A record that cannot be replayed at all is then left out, as a whole.
        """
        log.error(
            "Failed to replay an appended record: partition=%s; loading the partition again",
            held.partition.tp,
        )
        if held.wake is not None:
            held.wake.cancel()
            held.wake = None
        _complete(held.shard.resign(self._clock_ms()))
        held.shard = self._new_shard()
        held.loading = self._loop.create_task(self._load(held))

    def _note_failed_load(self, held: Held[S], error: Exception, delay_s: float) -> None:
        """Log why loading failed, with a traceback for errors that no log and no disk raises."""
        known = isinstance(error, (KafkaError, OSError, MemoryError, CorruptBatch))
        held.load_error = str(error) or type(error).__name__
        if held.wake is not None:
            held.wake.cancel()
            held.wake = None
        tp = held.partition.tp
        log.error(
            "Failed to load: partition=%s retry in %.1f s: %s", tp, delay_s, held.load_error,
            exc_info=None if known else error,
        )  # fmt: skip

    def _resign(self, index: int) -> None:
        held = self._held.pop(index)
        if held.loading is not None:
            held.loading.cancel()
        if held.wake is not None:
            held.wake.cancel()
        _complete(held.shard.resign(self._clock_ms()))

    def is_held(self, held: Held[S]) -> bool:
        """Whether a shard is still in use for its partition."""
        return any(held is one for one in self._held.values())

    # --- results

    def perform(self, held: Held[S], result: CoordinatorResult[R]) -> bool:
        """Append the records of a result and send its answers; false where the append failed."""
        appended = True
        if result.records:
            code = self._append(held, result)
            if code is None:
                try:
                    for record in result.records:
                        self._replay(held, result, record)
                except Exception:  # The log has it: the state of the shard is unknown.
                    self.load_again(held)
                    raise
            else:
                appended = False
                result = result.refused(code)
        self._settle(held, result)
        self.time(held)
        if appended and result.follow is not None:
            then: CoordinatorResult[R] = CoordinatorResult(result.now_ms)
            result.follow(then)
            self.perform(held, then)
        return appended

    def transaction_ended(
        self, partition: Partition, producer_id: int, *, committed: bool, end: int
    ) -> None:
        """Notify a partition's shard, if there is one, of a marker; the log now ends at `end`."""
        if partition.tp.topic != self.topic:
            return
        held = self._held.get(partition.tp.partition)
        if held is None or held.loading is not None:
            return  # It comes to it when it reads its log.
        ended = self._kind.ended(producer_id, committed=committed)
        held.end = max(held.end, end)
        if ended is not None:
            held.shard.replay(ended, self._clock_ms())
            self.time(held)

    def sweep(self, work: Callable[[S, int], Iterable[CoordinatorResult[R]]]) -> None:
        """Have all shards that are loaded do some work of their own."""

        def swept(held: Held[S]) -> None:
            def perform(result: CoordinatorResult[R]) -> None:
                if held.loading is None:  # Else an append has failed, and the shard is another one.
                    self.perform(held, result)

            turns = work(held.shard, self._clock_ms())
            each_isolated(turns, perform, "Periodic work", name=lambda _: held.partition.tp)

        loaded = [held for held in self._held.values() if held.loading is None]
        each_isolated(loaded, swept, "Periodic work", name=lambda held: held.partition.tp)

    def _replay(self, held: Held[S], result: CoordinatorResult[R], record: R) -> None:
        if result.producer is None:
            held.shard.replay(record, result.now_ms)
            return
        pending = self._kind.in_transaction(result.producer.id, record)
        if pending is not None:
            held.shard.replay(pending, result.now_ms)

    def _settle(self, held: Held[S], result: CoordinatorResult[R]) -> None:
        """Send at once the responses that need not wait until records are committed."""
        if (result.answers or result.orders) and held.end > held.partition.log.high_watermark:
            self._when_counted(held, result)
        else:
            self._hand_out(held, result)

    def _when_counted(self, held: Held[S], result: CoordinatorResult[R]) -> None:
        """Send the responses once everything appended so far is committed.

        Responses to reads wait, too: no client may see what a crash could still undo. If it is
        never committed nothing is undone, for it may have been written: the waiter gets an error.
        Orders outlast the timeout of the waiting request: what is in the log is carried out. They
        also outlast a new epoch in which this broker stays the leader: its log is kept, and not
        loaded again.
        """

        def complete(code: ErrorCode) -> None:
            if not code:
                self._hand_out(held, result)
                return
            _fail(result, code)
            result.answers = []
            if code is ErrorCode.REQUEST_TIMED_OUT and result.orders and self.is_held(held):
                self._when_counted(held, result)
            elif code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                self._hand_out(held, result)
            elif (
                code is ErrorCode.NOT_LEADER_OR_FOLLOWER
                and result.orders
                and held.partition.is_leader
                and self.is_held(held)
            ):
                self._settle(held, result)

        self._await_count(held, complete)

    def _await_count(
        self, held: Held[S], complete: Callable[[ErrorCode], None]
    ) -> "asyncio.Future[None]":
        partition = held.partition
        uncounted = Uncounted(partition, held.end, partition.leader_epoch, complete)
        return DelayedProduce(
            self._loop,
            [uncounted],
            acks=ALL_IN_SYNC,
            timeout_ms=self._limits().timeout_ms,
            response=None,
        ).future

    def _hand_out(self, held: Held[S], result: CoordinatorResult[R]) -> None:
        _complete(result)
        if result.orders and self.is_held(held):
            each_isolated(
                result.orders,
                lambda order: self._carry_out(held, order),
                "Work of a coordinator",
                name=lambda _: held.partition.tp,
            )

    def _append(self, held: Held[S], result: CoordinatorResult[R]) -> ErrorCode | None:
        partition = held.partition
        encode, now_ms = self._kind.encode, result.now_ms
        contents = [(now_ms, *encode(record), ()) for record in result.records]
        producer = result.producer or NO_PRODUCER
        try:
            partition.check_leader()
            partition.check_in_sync()
            batch = build_batch(
                contents,
                codec=self._limits().codec,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                transactional=result.producer is not None,
            )
            info = partition.append_own(bytearray(batch), now_ms=now_ms)
        except KafkaError as error:
            count = len(result.records)
            log.error("Failed to append: partition=%s records=%d %s", partition.tp, count, error)
            return error.code
        held.end = info.last_offset + 1
        return None

    def append_plain(self, held: Held[S], section: bytes, count: int, now_ms: int) -> bool:
        """Append records of that time that are laid out already; false if that cannot be done.

        As `_append` without a producer, for a shard that `prompt` gave: no other broker has a
        replica, so that this broker leads it, and is all of its ISR.
        """
        partition = held.partition
        batch = plain_batch_of(section, count, now_ms)
        if len(batch) > partition.rules.log_config.max_message_bytes:
            return False
        try:
            first = partition.append_plain(
                memoryview(batch), records=count, max_timestamp=now_ms, now_ms=now_ms
            )
        except KafkaError:
            return False
        held.end = first + count
        return True

    # --- time

    def time(self, held: Held[S]) -> None:
        """Set the timer for the shard's next deadline, unless it is set for an earlier one."""
        next_ms = held.shard.next_ms
        if next_ms is None or (held.wake is not None and held.wake_ms <= next_ms):
            return
        if held.wake is not None:
            held.wake.cancel()
        delay_ms = max(next_ms - steady_ms(self._loop), 1)
        held.wake_ms = next_ms
        held.wake = self._loop.call_later(delay_ms / 1000, self._wake, held)

    def _wake(self, held: Held[S]) -> None:
        held.wake = None
        try:
            while (result := held.shard.tick(self._clock_ms())) is not None:
                self.perform(held, result)
        except Exception:  # Else the timers of all other groups would stop.
            tp = held.partition.tp
            log.exception("Timers failed: partition=%s; retry in %.1f s", tp, WAKE_RETRY_S)
            if held.loading is None:
                self._wake_later(held)
        else:
            self.time(held)

    def _wake_later(self, held: Held[S]) -> None:
        if held.wake is not None:
            held.wake.cancel()
        held.wake_ms = 0  # What is overdue does not have it tried sooner.
        held.wake = self._loop.call_later(WAKE_RETRY_S, self._wake, held)


def _stop_loading(held: Held[Any]) -> None:
    if held.loading is not None:
        held.loading.cancel()


def steady_ms(loop: asyncio.AbstractEventLoop) -> int:
    """The clock for timers: changes of the wall clock do not affect it."""
    return int(loop.time() * 1000)


def _complete(result: CoordinatorResult[Any]) -> None:
    def complete(answer: tuple[object, object]) -> None:
        waiter, response = answer
        # A client that has gone cancelled its wait; its member's session decides about it.
        if isinstance(waiter, _WAITING) and not waiter.done():
            waiter.set_result(response)

    each_isolated(result.answers, complete, "Answering", name=lambda _: "a waiting request")


def _fail(result: CoordinatorResult[Any], code: ErrorCode) -> None:
    def fail(answer: tuple[object, object]) -> None:
        waiter, _ = answer
        if isinstance(waiter, _WAITING) and not waiter.done():
            waiter.fail(KafkaError(code))

    each_isolated(result.answers, fail, "Refusing", name=lambda _: "a waiting request")
