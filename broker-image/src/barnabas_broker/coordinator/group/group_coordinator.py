"""The group coordinator: the shards of groups in their runtime, and what concerns all groups.

Decisions are the core's (`shard`); logs, waiting clients and timers are the runtime's
(`coordinator.runtime`).
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator import runtime
from barnabas_broker.coordinator.group import prompt_commits, records
from barnabas_broker.coordinator.group.consumer.expressions import Expressions
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.limits import BATCHES_OF_METADATA, Limits
from barnabas_broker.coordinator.group.records import Record
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.coordinator.memory import Account
from barnabas_broker.coordinator.runtime import Runtime, Unloaded
from barnabas_broker.coordinator.waiting import Parked
from barnabas_broker.replica.partition import Partition
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.group_values import GroupCommit, GroupSync
from barnabas_kafka.protocol.messages.sync_group import SyncGroupResponse
from barnabas_kafka.protocol.plain_commit import records as commit_records
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

GROUPS_TOPIC = "__consumer_offsets"

Step = Callable[[Shard, Waiter, int], CoordinatorResult]


class GroupCoordinator:
    """All groups that this broker coordinates. Lives on the event loop.

    `leader` gives the partition if it is led here, and raises KafkaError otherwise; `new_id` a text
    that was never given before; `clock_ms` is the wall clock; `memory_bytes` is how much memory the
    broker may use.
    """

    def __init__(
        self,
        *,
        leader: Callable[[TopicPartition], Partition],
        settings: Callable[[], BrokerSettings],
        new_id: Callable[[], str],
        clock_ms: Callable[[], int],
        memory_bytes: int = 4 << 30,
    ) -> None:
        self._memory_bytes = memory_bytes
        self._in_use = Account()
        self._expressions = Expressions()
        self._settings = settings
        self._new_id = new_id
        self._loop = asyncio.get_running_loop()
        self._image = MetadataImage(cluster_id="")
        self._limits = Limits.from_settings(settings(), memory_bytes=memory_bytes)
        self._log_limits = _log_limits(settings())
        self._expiry: asyncio.TimerHandle | None = None
        self._runtime: Runtime[Shard, Record] = Runtime(
            GROUPS_TOPIC,
            records.KIND,
            leader=leader,
            limits=lambda: self._log_limits,
            new_shard=self._new_shard,
            clock_ms=clock_ms,
        )

    # --- life

    def start(self) -> None:
        """Begin to forget offsets that are kept no longer."""
        delay_ms = self._settings()[keys.OFFSETS_RETENTION_CHECK_INTERVAL_MS]
        self._expiry = self._loop.call_later(delay_ms / 1000, self._expire)

    def stop(self) -> None:
        """Answer all waiting clients with an error, and do nothing more."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._runtime.stop()

    def on_image(self, old: MetadataImage, new: MetadataImage) -> None:
        """Take up and give up shards as leadership comes and goes; forget deleted topics.

        To be called when the replicas have done what the image says.
        """
        self._limits = Limits.from_settings(self._settings(), memory_bytes=self._memory_bytes)
        self._log_limits = _log_limits(self._settings())
        self._image = new

        def apply(shard: Shard) -> None:
            shard.limits = self._limits
            shard.on_image(new)

        each_isolated(self._runtime.all_shards, apply, "Applying metadata", name=lambda _: "groups")
        self._runtime.on_image(new)
        deleted = frozenset(each.name for each in new.differences(old) if each.after is None)
        if deleted:
            self._runtime.sweep(lambda shard, now_ms: shard.forget_topics(deleted, now_ms))

    # --- requests

    def partition_of(self, group_id: str) -> int | None:
        """The partition whose leader coordinates a group; None while the topic is missing."""
        return self._runtime.partition_of(group_id)

    def ask(
        self,
        group_id: str,
        step: Step,
        refuse: Callable[[KafkaError], object] | None = None,
        waiter: Parked | None = None,
    ) -> Any:
        """Have a step taken on the group's shard; see `Runtime.ask`."""
        return self._runtime.ask(group_id, step, refuse, waiter)

    def commit_at_once(self, commit: GroupCommit, version: int, now_ms: int) -> bool:
        """Take a commit for partitions that exist; it counts then.

        False, with nothing done, if it needs a turn (`Shard.commit`): its group does not take it,
        or its records could not be written, or would not count at once.
        """
        group_id, written, _, member_id, _, topics = commit
        held = self._runtime.prompt(group_id)
        if held is None:
            return False
        shard = held.shard
        group = prompt_commits.taker(shard, commit, version)
        if group is None:
            return False
        section, count = commit_records(written, topics, now_ms, 0)
        if not self._runtime.append_plain(held, section, count, now_ms):
            return False
        try:
            shard.renew_session(group, member_id)
            prompt_commits.take(group, topics, now_ms)
        except Exception:  # The log has it: the state of the shard is unknown.
            self._runtime.load_again(held)
            raise
        self._runtime.time(held)
        return True

    def assignment(self, request: GroupSync) -> SyncGroupResponse | None:
        """The answer to a SyncGroup that writes nothing (`Shard.assignment`), else None.

        Nothing uncommitted is returned. Raises as `ask` does.
        """
        held = self._runtime.held(request.group_id)
        if held.end > held.partition.log.high_watermark:
            return None
        return held.shard.assignment(request)

    def shard(self, group_id: str) -> Shard:
        """The shard of a group, for what writes nothing; raises as `ask` does."""
        return self._runtime.held(group_id).shard

    def group(self, group_id: str) -> Group | None:
        """A group to read, None if there is none; raises as `ask` does."""
        return self.shard(group_id).groups.get(group_id)

    def groups(self) -> Sequence[Group]:
        """All groups coordinated here, as far as they are loaded."""
        return [group for shard in self._runtime.shards for group in shard.groups.values()]

    @property
    def join_bytes_max(self) -> int:
        """How large a JoinGroup request may be (`Limits.join_bytes_max`)."""
        return max(self._limits.join_bytes_max, BATCHES_OF_METADATA * self._runtime.batch_bytes_max)

    @property
    def bytes_in_use(self) -> int:
        """How much memory the groups take, as it is counted."""
        return self._in_use.held

    @property
    def loading(self) -> bool:
        """Whether some groups are still being read back."""
        return self._runtime.loading

    @property
    def unloaded(self) -> Sequence[Unloaded]:
        """The partitions that are still being loaded, and why an attempt failed."""
        return self._runtime.unloaded

    def settled(self, group_id: str) -> "asyncio.Future[None] | None":
        """When everything that the group shows is committed; None if it is already.

        Raises as `ask` does.
        """
        return self._runtime.settled(group_id)

    def transaction_ended(
        self, partition: Partition, producer_id: int, *, committed: bool, end: int
    ) -> None:
        """A marker was appended to some partition, which now ends at `end`."""
        self._runtime.transaction_ended(partition, producer_id, committed=committed, end=end)

    def _new_shard(self) -> Shard:
        shard = Shard(
            self._limits,
            new_id=self._new_id,
            steady_ms=partial(runtime.steady_ms, self._loop),
            in_use=self._in_use,
            expressions=self._expressions,
        )
        shard.on_image(self._image)
        return shard

    def _expire(self) -> None:
        self.start()
        self._runtime.sweep(lambda shard, now_ms: shard.expire(now_ms))


def _log_limits(settings: BrokerSettings) -> runtime.Limits:
    return runtime.Limits(
        load_buffer_bytes=settings[keys.OFFSETS_LOAD_BUFFER_SIZE],
        timeout_ms=settings[keys.OFFSETS_COMMIT_TIMEOUT_MS],
        codec=Codec(settings[keys.OFFSETS_TOPIC_COMPRESSION_CODEC]),
    )
