"""The group coordinator as the broker runs it: logs, waiting clients and timers around the core.

For each partition of `__consumer_offsets` that this broker leads there is a shard, read back from
the log when leadership begins and given up when it ends. A turn is performed at once and whole, on
the event loop: its records are appended as one batch (with the sense of acks=all), replayed, and
its answers handed out. Decisions are the core's (`shard`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.limits import Limits
from barnabas_broker.coordinator.group.loading import read_back
from barnabas_broker.coordinator.group.records import Record, encode
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.coordinator.group.turns import Turn, Waiter
from barnabas_broker.coordinator.hashing import partition_of
from barnabas_broker.log.validator import validate_produce
from barnabas_broker.replica.partition import Partition
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.batch import CorruptBatch
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

GROUPS_TOPIC = "__consumer_offsets"
RECORDS_VERSION = 11
"""Records are held to the rules of this version of Produce: all codecs are allowed."""

Step = Callable[[Shard, Waiter, int], Turn]


@dataclass(slots=True)
class _Held:
    """A shard, its partition, and the call that wakes it."""

    partition: Partition
    shard: Shard
    loading: "asyncio.Task[None] | None" = None
    wake: asyncio.TimerHandle | None = None
    wake_ms: int = field(default=0)


class GroupCoordinator:
    """All groups that this broker coordinates. Lives on the event loop.

    `leader` gives the partition if it is led here, and raises KafkaError otherwise; `new_id` a text
    that was never given before; `clock_ms` is the wall clock.
    """

    def __init__(
        self,
        *,
        leader: Callable[[TopicPartition], Partition],
        settings: Callable[[], BrokerSettings],
        new_id: Callable[[], str],
        clock_ms: Callable[[], int],
    ) -> None:
        self._leader = leader
        self._settings = settings
        self._new_id = new_id
        self._clock_ms = clock_ms
        self._loop = asyncio.get_running_loop()
        self._held: dict[int, _Held] = {}
        self._partition_count = 0
        self._limits = Limits.from_settings(settings())
        self._expiry: asyncio.TimerHandle | None = None

    # --- life

    def start(self) -> None:
        """Begin to forget offsets that are kept no longer."""
        delay_ms = self._settings()[keys.OFFSETS_RETENTION_CHECK_INTERVAL_MS]
        self._expiry = self._loop.call_later(delay_ms / 1000, self._expire)

    def stop(self) -> None:
        """Send whoever waits away, and do nothing more."""
        if self._expiry is not None:
            self._expiry.cancel()
        for index in list(self._held):
            self._resign(index)

    def on_image(self, old: MetadataImage, new: MetadataImage) -> None:
        """Take up and give up shards as leadership comes and goes; forget deleted topics.

        To be called when the replicas have done what the image says.
        """
        self._limits = Limits.from_settings(self._settings())
        topic = new.topic(GROUPS_TOPIC)
        self._partition_count = 0 if topic is None else len(topic.partitions)
        led: dict[int, Partition] = {}
        for index in range(self._partition_count):
            try:
                led[index] = self._leader(TopicPartition(GROUPS_TOPIC, index))
            except KafkaError:
                continue
        for index, held in list(self._held.items()):
            held.shard.limits = self._limits
            if led.get(index) is not held.partition:
                self._resign(index)
        for index, partition in led.items():
            if index not in self._held:
                self._take_up(index, partition)
        deleted = frozenset(name for name in old.topics if name not in new.topics)
        if deleted:
            self._sweep(lambda shard, now_ms: shard.forget_topics(deleted, now_ms))

    # --- requests

    def partition_of(self, group_id: str) -> int | None:
        """The partition whose leader coordinates a group; None while the topic is missing."""
        return partition_of(group_id, self._partition_count) if self._partition_count else None

    def ask(self, group_id: str, step: Step) -> Any:
        """Have a step taken on the group's shard; returns its answer, or a Future of it.

        Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR.
        """
        held = self._shard_of(group_id)
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._perform(held, step(held.shard, waiter, self._clock_ms()))
        return waiter.result() if waiter.done() else waiter

    def shard(self, group_id: str) -> Shard:
        """The shard of a group, for what needs no turn; raises as `ask` does."""
        return self._shard_of(group_id).shard

    def group(self, group_id: str) -> Group | None:
        """A group to look at, None if there is none; raises as `ask` does."""
        return self.shard(group_id).groups.get(group_id)

    def groups(self) -> Sequence[Group]:
        """All groups coordinated here, as far as they are loaded."""
        return [
            group
            for held in self._held.values()
            if held.loading is None
            for group in held.shard.groups.values()
        ]

    @property
    def loading(self) -> bool:
        """Whether some groups are still being read back."""
        return any(held.loading is not None for held in self._held.values())

    def _shard_of(self, group_id: str) -> _Held:
        index = self.partition_of(group_id)
        held = None if index is None else self._held.get(index)
        if held is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if held.loading is not None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return held

    # --- shards

    def _take_up(self, index: int, partition: Partition) -> None:
        held = _Held(partition, Shard(self._limits, new_id=self._new_id))
        self._held[index] = held
        if partition.log.log_start_offset < partition.log.high_watermark:
            held.loading = self._loop.create_task(self._load(held))

    async def _load(self, held: _Held) -> None:
        began_ms = self._clock_ms()
        tp = held.partition.tp
        replay = held.shard.replay
        steps = read_back(
            held.partition.log,
            lambda record: replay(record, began_ms),
            buffer_bytes=self._settings()[keys.OFFSETS_LOAD_BUFFER_SIZE],
        )
        try:
            for _ in steps:
                await asyncio.sleep(0)
        except (KafkaError, CorruptBatch) as error:
            # Its groups stay out of reach: to serve some of them without their offsets is worse.
            log.error("the groups of %s could not be loaded: %s", tp, error)
            return
        held.loading = None
        now_ms = self._clock_ms()
        for turn in held.shard.loaded(now_ms):
            self._perform(held, turn)
        self._time(held)
        log.info("loaded %d groups of %s in %d ms", len(held.shard.groups), tp, now_ms - began_ms)

    def _resign(self, index: int) -> None:
        held = self._held.pop(index)
        if held.loading is not None:
            held.loading.cancel()
        if held.wake is not None:
            held.wake.cancel()
        self._hand_out(held.shard.resign(self._clock_ms()))

    # --- turns

    def _perform(self, held: _Held, turn: Turn) -> None:
        if turn.records:
            code = self._append(held.partition, turn.records, turn.now_ms)
            if code is None:
                for record in turn.records:
                    held.shard.replay(record, turn.now_ms)
            else:
                turn = turn.refused(code)
        self._hand_out(turn)
        self._time(held)

    def _hand_out(self, turn: Turn) -> None:
        for waiter, response in turn.answers:
            # A client that has gone cancelled its wait; its member's session decides about it.
            if isinstance(waiter, asyncio.Future) and not waiter.done():
                waiter.set_result(response)

    def _append(
        self, partition: Partition, records: Sequence[Record], now_ms: int
    ) -> ErrorCode | None:
        codec = Codec(self._settings()[keys.OFFSETS_TOPIC_COMPRESSION_CODEC])
        contents = [(now_ms, *encode(record), ()) for record in records]
        try:
            partition.check_leader()
            partition.check_in_sync()
            batches = validate_produce(
                bytearray(build_batch(contents, codec=codec)),
                rules=partition.rules.produce_rules(RECORDS_VERSION),
                now_ms=now_ms,
            )
            partition.append(batches, now_ms=now_ms)
        except KafkaError as error:
            log.error("%s: %d records were not written: %s", partition.tp, len(records), error)
            return error.code
        return None

    # --- time

    def _time(self, held: _Held) -> None:
        """Be woken when the shard next has something to do, if not sooner."""
        next_ms = held.shard.next_ms
        if next_ms is None or (held.wake is not None and held.wake_ms <= next_ms):
            return
        if held.wake is not None:
            held.wake.cancel()
        delay_ms = max(next_ms - self._clock_ms(), 1)
        held.wake_ms = next_ms
        held.wake = self._loop.call_later(delay_ms / 1000, self._wake, held)

    def _wake(self, held: _Held) -> None:
        held.wake = None
        while (turn := held.shard.tick(self._clock_ms())) is not None:
            self._perform(held, turn)
        self._time(held)

    def _expire(self) -> None:
        self.start()
        self._sweep(lambda shard, now_ms: shard.expire(now_ms))

    def _sweep(self, work: Callable[[Shard, int], Iterable[Turn]]) -> None:
        """Have all shards that are loaded do some work of their own."""
        for held in list(self._held.values()):
            if held.loading is None:
                for turn in work(held.shard, self._clock_ms()):
                    self._perform(held, turn)
