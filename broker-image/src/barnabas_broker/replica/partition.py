"""A local replica of a partition: its log, its leadership and its waiting requests.

Leadership comes from the metadata image and is never decided here. The high watermark is the
smallest log end offset among the in-sync replicas (`replica.isr` decides); while this broker
is the only replica it is the log end offset, and an append is readable as soon as it is written.
Where records count only once they are on disk (`commits` is given), it is the end of what is
durable instead.

As a follower the partition takes what a fetcher brings: batches, and the leader's high watermark.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future as ThreadFuture
from dataclasses import replace
from typing import NamedTuple

from barnabas_broker.cluster.failures import call_isolated
from barnabas_broker.cluster.image import NO_LEADER, PartitionState
from barnabas_broker.invariants import violated
from barnabas_broker.log.appending import ValidatedBatches
from barnabas_broker.log.partition_log import AppendInfo, PartitionLog, PlainBatch
from barnabas_broker.log.producer_state import Origin, Sequences
from barnabas_broker.log.segment_stats import CODEC_MASK
from barnabas_broker.replica import replica_demotion
from barnabas_broker.replica.appends import Appends
from barnabas_broker.replica.broker_topic_stats import BrokerTopicStats
from barnabas_broker.replica.context import ReplicationContext
from barnabas_broker.replica.delayed_delete_records import DelayedDeleteRecords
from barnabas_broker.replica.delayed_fetch import DelayedFetch
from barnabas_broker.replica.delayed_produce import ALL_IN_SYNC, DelayedProduce
from barnabas_broker.replica.group_commit import GroupCommits
from barnabas_broker.replica.isr import InSync, InSyncRules, IsrChange
from barnabas_broker.replica.replication_quota import is_throttled
from barnabas_broker.replica.selector import Selector, preferred
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH, TopicPartition
from barnabas_kafka.records.batch import BatchHeader, headers

READ_COMMITTED = 1
"""The isolation level of consumers that see only decided transactions (KIP-98)."""

NOT_LED = PartitionState(
    replicas=(), isr=(), leader=NO_LEADER, leader_epoch=NO_EPOCH, controller_epoch=NO_EPOCH
)
"""The state of a partition until the controller has given it one."""


class OwnBatch(NamedTuple):
    """A batch that a coordinator on this broker built, and which needs no validation."""

    buffer: bytearray
    headers: Sequence[tuple[int, BatchHeader]]
    max_timestamp: int

    @property
    def saved_bytes(self) -> int | None:
        """Not known where the batch is compressed, as it is not needed."""
        return None if any(header.attributes & CODEC_MASK for _, header in self.headers) else 0


class Partition:
    """One partition that has a replica on this broker."""

    __slots__ = (
        "_alone",
        "_broker_id",
        "_commits",
        "_context",
        "_cut",
        "_flush_soon",
        "_sync_waiters",
        "_unread_bytes",
        "appends",
        "delete_waiters",
        "fetch_waiters",
        "follower_throttled",
        "in_sync",
        "leader_throttled",
        "log",
        "markers",
        "produce_waiters",
        "rules",
        "state",
        "tp",
        "traffic",
    )

    def __init__(
        self,
        broker_id: int,
        tp: TopicPartition,
        *,
        log: PartitionLog,
        rules: TopicRules,
        flush_soon: Callable[[PartitionLog], None],
        traffic: BrokerTopicStats,
        context: ReplicationContext,
        commits: GroupCommits | None = None,
    ) -> None:
        self._broker_id = broker_id
        self._commits = commits
        self._context = context
        self._alone = False  # It leads, and there is no other replica.
        self._cut: ThreadFuture[object] | None = None
        self._sync_waiters: list[asyncio.Future[None]] = []
        self._flush_soon = flush_soon
        self._unread_bytes = 0  # Appended since the high watermark last moved.
        self.tp = tp
        self.log = log
        self._take_throttles(rules)
        self.rules = rules
        self.traffic = traffic
        #: how many ends of transactions were written here since the broker started
        self.markers = 0
        self.state = NOT_LED
        self.in_sync = InSync(broker_id, self._in_sync_rules())
        self.appends = Appends()
        self.fetch_waiters: set[DelayedFetch] = set()
        self.produce_waiters: set[DelayedProduce] = set()
        self.delete_waiters: set[DelayedDeleteRecords] = set()

    @property
    def is_leader(self) -> bool:
        """Whether clients may read and write here."""
        return self.state.leader == self._broker_id

    @property
    def leader_epoch(self) -> int:
        """The epoch of the current leader; stamped on every batch it appends."""
        return self.state.leader_epoch

    @property
    def counted_out(self) -> bool:
        """Whether the controller must do without this replica, because of its log directory."""
        health = self.log.health
        return not health.writable and replica_demotion.counted_out(
            self.state,
            self._broker_id,
            health.state,
            min_in_sync=self.rules.min_in_sync_replicas,
        )

    def become(self, state: PartitionState) -> None:
        """Apply a state from the controller; a new leader epoch starts at the log end.

        A state that is older by leader epoch, then by partition epoch, changes nothing: states may
        arrive on several paths. The log must not be under truncation.
        """
        known = self.state
        if state.leader_epoch < known.leader_epoch and state is not NOT_LED:
            return
        assert self._cut is None, violated("a log that is being cut changes its role afterwards")
        self.appends.changed()  # Of what was true until now.
        changed = state.leader_epoch != known.leader_epoch
        if not changed and state.partition_epoch < self.in_sync.partition_epoch:
            state = replace(
                state, isr=known.isr, leader=known.leader, partition_epoch=known.partition_epoch
            )
        try:
            self._take_state(state, changed=changed)
        except BaseException as error:
            # Not led here, in the old epoch: the state that comes again is a whole transition. Of a
            # directory that has failed the controller gives what is led here to others.
            if self.log.failure is None or not isinstance(error, KafkaError | OSError):
                self.state, self._alone = replace(known, leader=NO_LEADER), False
            raise
        if changed:
            self.wake()
        elif self.delete_waiters:  # The assignment may lack a replica that a deletion waited for.
            self.look_at_deletions()

    def _take_state(self, state: PartitionState, *, changed: bool) -> None:
        assert not self.log.busy, violated("a log that is being cut changes its role afterwards")
        self.state = state
        self._alone = self.is_leader and state.replicas == (self._broker_id,)
        if self.is_leader:
            self.trust()
            log = self.log
            if log.latest_epoch != state.leader_epoch:
                log.assign_epoch_start(state.leader_epoch, log.log_end_offset)
            if changed or state.partition_epoch > self.in_sync.partition_epoch:
                # The same state once more says nothing about a change that is under way.
                self.in_sync.become(
                    state, log_end=log.log_end_offset, now_ms=self._context.monotonic_ms()
                )
            self._advance_high_watermark()
        else:
            self.in_sync.resign(state)
            assert not self._alone, violated("only a leader has no other replica to wait for")

    def trust(self) -> None:
        """Note that no committed record is missing: the log is the leader's, or has caught up."""
        self._context.truncated_logs.trust(self.tp)

    def take_rules(self, rules: TopicRules) -> None:
        """Apply changed settings of the topic."""
        self.rules = rules
        self.log.config = rules.log_config
        self.in_sync.rules = self._in_sync_rules()
        self._take_throttles(rules)
        self.recheck_high_watermark()  # A smaller min.insync.replicas holds it no more.

    def _take_throttles(self, rules: TopicRules) -> None:
        place = self.tp.partition, self._broker_id
        #: whether what this replica sends to followers, and fetches as one, is throttled
        self.leader_throttled = is_throttled(rules.leader_throttled, *place)
        self.follower_throttled = is_throttled(rules.follower_throttled, *place)

    def _in_sync_rules(self) -> InSyncRules:
        return InSyncRules(
            lag_max_ms=self._context.lag_max_ms,
            min_in_sync=self.rules.min_in_sync_replicas,
            flush_on_shrink=self._context.flush_on_shrink,
        )

    def take_log(self, log: PartitionLog) -> None:
        """Switch to a complete copy of the log in another directory."""
        self.log = log
        if self.is_leader:
            self._advance_high_watermark()
        self.wake()

    def check_leader(self, client_epoch: int = NO_EPOCH) -> None:
        """Raise unless this broker leads the partition in the epoch the client knows (KIP-320).

        Raises KafkaError with NOT_LEADER_OR_FOLLOWER, and as `check_epoch` does.
        """
        self.check_epoch(client_epoch)
        if self.state.leader != self._broker_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_readable(self, client_epoch: int = NO_EPOCH) -> None:
        """Raise unless consumers may read here, from the leader or a follower (KIP-392).

        Raises KafkaError with REPLICA_NOT_AVAILABLE while a follower's log is being cut, and as
        `check_epoch` does.
        """
        self.check_epoch(client_epoch)
        if self.log.busy:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE)

    def check_epoch(self, client_epoch: int) -> None:
        """Raise unless the log can be read and this is the leader epoch that the client knows.

        Raises KafkaError with KAFKA_STORAGE_ERROR (its log directory is offline),
        FENCED_LEADER_EPOCH (the client is behind) or UNKNOWN_LEADER_EPOCH (this broker is).
        """
        if not self.log.health.readable:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.log.health.reason)
        if client_epoch not in (NO_EPOCH, self.state.leader_epoch):
            if client_epoch < self.state.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def min_in_sync(self) -> int:
        """How many replicas must hold a record: no more than there are (effectiveMinIsr)."""
        return min(self.rules.min_in_sync_replicas, len(self.state.replicas))

    def check_in_sync(self) -> None:
        """Raise NOT_ENOUGH_REPLICAS if an append could not be held by enough replicas."""
        needed = self.min_in_sync
        in_sync = len(self.state.isr)
        if in_sync < needed:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.tp} has {in_sync} in-sync replicas, min.insync.replicas is {needed}",
            )

    def append_own(self, batch: bytearray, *, now_ms: int) -> AppendInfo:
        """Append a batch that a coordinator on this broker built: records, or a control batch.

        Raises KafkaError: MESSAGE_TOO_LARGE, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
        TRANSACTION_COORDINATOR_FENCED; StorageError.
        """
        ((position, header),) = headers(batch)
        if len(batch) > self.rules.log_config.max_message_bytes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
        own = OwnBatch(batch, [(position, header)], header.max_timestamp)
        return self.append(own, now_ms=now_ms, origin=Origin.COORDINATOR)

    def append(
        self, batches: ValidatedBatches, *, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> AppendInfo:
        """Append what a producer sent; raises what `PartitionLog.append_as_leader` does."""
        assert self.log.latest_epoch <= self.state.leader_epoch, violated(
            "a leader appends in the newest epoch of its log"
        )
        info = self.log.append_as_leader(
            batches, leader_epoch=self.state.leader_epoch, now_ms=now_ms, origin=origin
        )
        if info.duplicate:
            self.recheck_high_watermark()  # Kafka's appendRecordsToLeader does so, too.
        else:
            self._appended(len(batches.buffer), info.last_offset - info.first_offset + 1)
        return info

    def append_plain(
        self,
        batch: memoryview,
        *,
        records: int,
        max_timestamp: int,
        now_ms: int,
        sequences: Sequences | None = None,
    ) -> int:
        """As `PartitionLog.append_plain`; returns the first offset, raises as `append`."""
        first_offset = self.log.append_plain(
            batch,
            records,
            max_timestamp,
            leader_epoch=self.state.leader_epoch,
            now_ms=now_ms,
            sequences=sequences,
        )
        self._appended(len(batch), records)
        return first_offset

    def append_run(self, data: bytearray, run: Sequence[PlainBatch], *, now_ms: int) -> int | None:
        """Append batches of as many requests at once; as `PartitionLog.append_run`."""
        first_offset = self.log.append_run(
            data, run, leader_epoch=self.state.leader_epoch, now_ms=now_ms
        )
        if first_offset is not None:
            records = self.log.log_end_offset - first_offset
            assert records >= len(run), violated("each batch of a run has a record")
            self._appended(len(data), records, requests=len(run))
        return first_offset

    def _appended(self, size: int, records: int, *, requests: int = 1) -> None:
        self._unread_bytes += size
        traffic = self.traffic
        traffic.produces += requests
        traffic.bytes_in += size
        traffic.records_in += records
        if self._alone:
            self._advance_alone()
        else:
            self.appends.grew(size)
            self._advance_with_followers()
        log = self.log
        if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
            self._flush_soon(log)

    def counts_at_once(self, acks: int) -> bool:
        """Whether records appended now are acknowledged to these `acks` without a wait."""
        if self._commits is not None:
            return False
        return acks != ALL_IN_SYNC or self._alone

    def verdict(self, end: int, *, acks: int, leader_epoch: int) -> ErrorCode | None:
        """The result of a produce request that appended below the offset `end` in that epoch.

        NONE once the records are committed, None while they are not; KAFKA_STORAGE_ERROR,
        NOT_LEADER_OR_FOLLOWER or NOT_ENOUGH_REPLICAS_AFTER_APPEND if they may never be.
        """
        if not self.is_leader or self.state.leader_epoch != leader_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.log.failure is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if acks != ALL_IN_SYNC:
            held = self.log.log_end_offset if self._commits is None else self.log.durable_offset
            return ErrorCode.NONE if held >= end else None
        if self.log.high_watermark < end:
            return None
        if len(self.in_sync.maximal_isr) < self.min_in_sync:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def commit_ended(self) -> None:
        """A sync of the log has ended: move the high watermark, and complete what waited for it."""
        steps: list[Callable[[], None]] = [write.look for write in self.produce_waiters]
        if self.is_leader and self.log.failure is None:
            steps.insert(0, self._advance_high_watermark)
        call_isolated(steps, "Completion of a sync", self.tp)
        waiters, self._sync_waiters = self._sync_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def readable_until(self, isolation_level: int) -> int:
        """The offset before which consumers of that isolation level may read."""
        if isolation_level == READ_COMMITTED:
            return self.log.last_stable_offset
        return self.log.high_watermark

    def delete_records_before(self, offset: int) -> int:
        """Move the log start offset up to `offset` (-1: the high watermark), which is returned.

        The start may be beyond it already; replicas elsewhere follow (`deletion_verdict`). Raises
        KafkaError OFFSET_OUT_OF_RANGE above the high watermark, and POLICY_VIOLATION where the
        topic is only compacted, so that nothing is ever deleted (Kafka's DeleteRecords).
        """
        if not self.log.config.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        if offset == -1:
            offset = self.log.high_watermark
        if not 0 <= offset <= self.log.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log.delete_records_before(offset)
        self.wake()
        return offset

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset among the replicas on live brokers."""
        return self.in_sync.low_watermark(self.log.log_start_offset, alive=self._context.alive)

    def deletion_verdict(self, offset: int) -> ErrorCode | None:
        """The result of DeleteRecords: NONE once no live replica begins before `offset`.

        None until then; NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR if this broker no longer
        knows.
        """
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.log.failure is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE if self.low_watermark >= offset else None

    def look_at_brokers(self) -> None:
        """Answer requests that waited for brokers which have gone, and move the high watermark.

        The high watermark may have waited for one that was about to join the ISR: followers then
        have nothing to fetch that would move it.
        """
        if self.is_leader:
            self._advance_high_watermark()
        self.look_at_deletions()

    def recheck_high_watermark(self) -> None:
        """Move the high watermark if time or settings allow it, not only a log end."""
        if self.is_leader and self.log.failure is None:
            self._advance_high_watermark()

    def look_at_deletions(self) -> None:
        """Answer DeleteRecords requests that waited for a follower to fetch, or to leave."""
        for deletion in list(self.delete_waiters):
            deletion.look()

    def wake(self) -> None:
        """Have every waiting request look again: something else than an offset has changed."""
        waiting = [each.complete for each in (*self.fetch_waiters, *self.appends.fetch_waiters)]
        waiting += [each.wake for each in self.appends.watches]
        waiting += [each.look for each in self.produce_waiters]
        waiting += [each.look for each in self.delete_waiters]
        call_isolated(waiting, "Completion of a request", self.tp)

    # The high watermark.

    def _advance_high_watermark(self) -> None:
        if self._alone:
            self._advance_alone()
        else:
            self._advance_with_followers()

    def _own_end(self) -> int:
        """The offset below which this broker's log counts; what is above is being synced."""
        log = self.log
        end = log.log_end_offset
        if self._commits is not None:
            if log.durable_offset < end:
                self._commits.note(self)
            end = log.durable_offset
        return end

    def _advance_alone(self) -> None:
        end = self.log.log_end_offset if self._commits is None else self._own_end()
        if end > self.log.high_watermark:
            self._raise_high_watermark(end)
            for write in list(self.produce_waiters):
                write.look()

    def _advance_with_followers(self) -> None:
        log, context = self.log, self._context
        end = self.in_sync.committed_end(
            log.high_watermark,
            own_end=self._own_end(),
            log_end=log.log_end_offset,
            now_ms=context.monotonic_ms(),
            alive=context.alive,
        )
        if self.in_sync.waits_for_joining:
            context.held.add(self)
        if end > log.high_watermark:
            self._raise_high_watermark(end)
            for write in list(self.produce_waiters):
                write.look()

    def _raise_high_watermark(self, end: int) -> None:
        log = self.log
        unstable = log.producers.first_unstable_offset
        size, ahead = self._unread_bytes, log.log_end_offset - end
        if ahead > 0:
            # What is not committed yet will be counted when it is: its share goes by offsets.
            moved = end - log.high_watermark
            size = size * moved // (moved + ahead)
        self._unread_bytes -= size
        log.advance_high_watermark(end)
        self.appends.changed()
        if unstable is not None and unstable != log.producers.first_unstable_offset:
            # Bytes of the transaction were counted when appended: waiting fetches check again.
            for fetch in list(self.fetch_waiters):
                fetch.complete()
        if self.fetch_waiters:
            for fetch in list(self.fetch_waiters):
                fetch.grew(size or 1)  # There is something, though its size may be unknown.

    # Followers of this leader.

    def preferred_replica(
        self, selector: Selector, rack: str, *, fetch_offset: int, racks: Mapping[int, str | None]
    ) -> int | None:
        """Another broker that a consumer in `rack` should read from, None if it may read here.

        `racks` has every broker that the consumer can reach; see `replica.selector`.
        """
        if not self.is_leader or self._alone:
            return None
        for watch in self.appends.watches:
            watch.refresh()
        return preferred(
            selector,
            rack,
            self.in_sync,
            leader=self._broker_id,
            log_end=self.log.log_end_offset,
            fetch_offset=fetch_offset,
            racks=racks,
            now_ms=self._context.monotonic_ms(),
        )

    def follower_fetched(
        self, broker: int, *, offset: int, log_start: int, leader_end: int, broker_epoch: int
    ) -> None:
        """A follower holds all below `offset`; `leader_end` is the log's end before it is answered.

        Lets it into the ISR where it belongs, and moves the high watermark.
        """
        context, in_sync = self._context, self.in_sync
        moved = in_sync.fetched(
            broker,
            offset=offset,
            log_start=log_start,
            leader_end=leader_end,
            now_ms=context.monotonic_ms(),
            broker_epoch=broker_epoch,
        )
        change = in_sync.wanted_expansion(
            broker, high_watermark=self.log.high_watermark, alive=context.alive
        )
        if change is not None:
            context.change_isr(self, change)
        if moved:
            self._advance_with_followers()
        if self.delete_waiters:
            self.look_at_deletions()

    def follower_stayed(self, broker: int, *, fetched_ms: int, broker_epoch: int) -> None:
        """Note that a follower was at the log end until that time."""
        self.in_sync.stayed(broker, fetched_ms=fetched_ms, broker_epoch=broker_epoch)

    def shrink_isr(self) -> None:
        """Request the removal of followers that lag for too long; called periodically.

        A replica outside the ISR that held the high watermark back may have timed out, too.
        """
        if not self.is_leader or self._alone or self.log.failure is not None:
            return
        context = self._context
        change = self.in_sync.wanted_shrink(
            log_end=self.log.log_end_offset, now_ms=context.monotonic_ms()
        )
        if change is not None:
            context.change_isr(self, change)
        elif self.log.high_watermark < self.log.log_end_offset:
            self._advance_with_followers()

    def isr_changed(self, state: PartitionState) -> None:
        """Apply a requested ISR change that has been written."""
        if self.in_sync.change_committed(
            isr=state.isr, leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch
        ):
            self.state = replace(self.state, isr=state.isr, partition_epoch=state.partition_epoch)
            self.appends.changed()
            self._advance_high_watermark()

    def isr_change_refused(self, change: IsrChange) -> None:
        """Withdraw a requested ISR change that was refused."""
        self.in_sync.change_refused(change)
        self.appends.changed()
        self._advance_high_watermark()

    # This broker as a follower.

    def append_as_follower(
        self, records: bytes | bytearray | memoryview, *, max_epoch: int, now_ms: int
    ) -> AppendInfo | None:
        """Append batches as the leader stored them; raises as `PartitionLog.append_as_follower`."""
        info = self.log.append_as_follower(records, max_epoch=max_epoch, now_ms=now_ms)
        if info is not None:
            self._unread_bytes += len(records)
        log = self.log
        if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
            self._flush_soon(log)
        return info

    def take_marks(self, *, high_watermark: int, log_start: int) -> None:
        """Follow the leader's high watermark and log start offset, as far as this log reaches.

        The high watermark never goes back: committed records stay committed, also while a new
        leader has yet to learn of them.
        """
        log = self.log
        if min(high_watermark, log.log_end_offset) > log.high_watermark:
            self._raise_high_watermark(min(high_watermark, log.log_end_offset))
        if min(log_start, log.high_watermark) > log.log_start_offset:
            log.delete_records_before(min(log_start, log.high_watermark))

    async def until_durable(self) -> None:
        """Return once what was appended is on disk, where it counts only then; or has failed."""
        if self._commits is None:
            return
        while self.log.failure is None and self.log.durable_offset < self.log.log_end_offset:
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._sync_waiters.append(ended)
            self._commits.note(self)
            await ended

    @property
    def cut(self) -> "ThreadFuture[object] | None":
        """The truncation of the log that is under way in a thread, if any."""
        return self._cut

    def begin_cut(self, cut: "ThreadFuture[object]") -> None:
        """Note that a thread truncates the log: nothing else may touch it until `end_cut`."""
        assert self._cut is None, violated("a log is cut by one at a time")
        self._cut = cut
        self.log.busy = True

    def end_cut(self, cut: "ThreadFuture[object]") -> None:
        """Note the end of a truncation, successful or not, and do what waited for it."""
        assert cut.done(), violated("a cut ends with its thread's work")
        if self._cut is cut:
            self._cut = None
            self.log.busy = False
            self.wake()
            self._context.cut_ended(self.tp)
