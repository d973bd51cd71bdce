"""A partition as this broker holds it: its log, its leadership and who waits for it.

Leadership comes from the metadata image and is never decided here. The high watermark is the
smallest log end offset among the in-sync replicas; while this broker is the only replica it is
the log end offset, and an append is readable as soon as it is written.
"""

from collections.abc import Callable

from barnabas_broker.cluster.image import NO_LEADER, PartitionState
from barnabas_broker.log.partition_log import AppendInfo, PartitionLog
from barnabas_broker.log.validator import ValidatedBatches
from barnabas_broker.replica.delayed_fetch import DelayedFetch
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH, TopicPartition

READ_COMMITTED = 1
"""The isolation level of consumers that see only decided transactions (KIP-98)."""

NOT_LED = PartitionState(
    replicas=(), isr=(), leader=NO_LEADER, leader_epoch=NO_EPOCH, controller_epoch=NO_EPOCH
)
"""The state of a partition until the controller has given it one."""


class Partition:
    """One partition that has a replica on this broker."""

    __slots__ = ("_broker_id", "_flush_soon", "fetch_waiters", "log", "rules", "state", "tp")

    def __init__(
        self,
        broker_id: int,
        tp: TopicPartition,
        *,
        log: PartitionLog,
        rules: TopicRules,
        flush_soon: Callable[[PartitionLog], None],
    ) -> None:
        self._broker_id = broker_id
        self._flush_soon = flush_soon
        self.tp = tp
        self.log = log
        self.rules = rules
        self.state = NOT_LED
        self.fetch_waiters: set[DelayedFetch] = set()

    @property
    def is_leader(self) -> bool:
        """Whether clients may read and write here."""
        return self.state.leader == self._broker_id

    @property
    def leader_epoch(self) -> int:
        """The epoch of the current leader; stamped on every batch it appends."""
        return self.state.leader_epoch

    def become(self, state: PartitionState) -> None:
        """Take a state from the controller; a new leader epoch starts at the log's end."""
        changed = state.leader_epoch != self.state.leader_epoch
        self.state = state
        if self.is_leader:
            if self.log.latest_epoch != state.leader_epoch:
                self.log.assign_epoch_start(state.leader_epoch, self.log.log_end_offset)
            self._advance_high_watermark()
        if changed:
            self.wake_fetches()

    def take_rules(self, rules: TopicRules) -> None:
        """Go by changed topic settings from now on."""
        self.rules = rules
        self.log.config = rules.log_config

    def check_leader(self, client_epoch: int = NO_EPOCH) -> None:
        """Raise unless this broker leads the partition in the epoch the client knows (KIP-320).

        Raises KafkaError with NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH (the client is behind)
        or UNKNOWN_LEADER_EPOCH (this broker is).
        """
        if client_epoch not in (NO_EPOCH, self.state.leader_epoch):
            if client_epoch < self.state.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self.state.leader != self._broker_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_in_sync(self) -> None:
        """Raise NOT_ENOUGH_REPLICAS if an append could not be held by enough replicas."""
        needed = self.rules.min_in_sync_replicas
        if len(self.state.isr) < needed:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.tp} has {len(self.state.isr)} in-sync replicas, "
                f"min.insync.replicas is {needed}",
            )

    def append(self, batches: ValidatedBatches, *, now_ms: int) -> AppendInfo:
        """Append what a producer sent; raises what `PartitionLog.append_as_leader` does."""
        log = self.log
        info = log.append_as_leader(batches, leader_epoch=self.state.leader_epoch, now_ms=now_ms)
        if not info.duplicate:
            self._advance_high_watermark()
            if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
                self._flush_soon(log)
            if self.fetch_waiters:
                size = len(batches.buffer)
                for waiter in list(self.fetch_waiters):
                    waiter.grew(size)
        return info

    def readable_until(self, isolation_level: int) -> int:
        """The offset before which consumers of that isolation level may read."""
        if isolation_level == READ_COMMITTED:
            return self.log.last_stable_offset
        return self.log.high_watermark

    def delete_records_before(self, offset: int) -> int:
        """Move the log start offset up to `offset` (-1: the high watermark) and return it.

        Raises KafkaError OFFSET_OUT_OF_RANGE above the high watermark, and POLICY_VIOLATION where
        the topic is only compacted, so that nothing is ever deleted (Kafka's DeleteRecords).
        """
        if not self.log.config.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        if offset == -1:
            offset = self.log.high_watermark
        if not 0 <= offset <= self.log.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log.delete_records_before(offset)
        self.wake_fetches()
        return self.log.log_start_offset

    def wake_fetches(self) -> None:
        """Answer every waiting fetch: what it would read has changed in kind."""
        for waiter in list(self.fetch_waiters):
            waiter.complete()

    def _advance_high_watermark(self) -> None:
        if self.state.isr == (self._broker_id,):
            self.log.advance_high_watermark(self.log.log_end_offset)
