"""All partitions that this broker holds, kept in step with the metadata image."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final, Protocol
from uuid import UUID

from barnabas_broker.cluster.failures import call_isolated, each_isolated
from barnabas_broker.cluster.image import (
    NO_LEADER,
    MetadataImage,
    PartitionState,
    TopicDifference,
    TopicImage,
)
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.health import DirectoryHealth, Health, lacks_means
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.replica.broker_topic_stats import BrokerTopicStats
from barnabas_broker.replica.context import ReplicationContext
from barnabas_broker.replica.group_commit import GroupCommits
from barnabas_broker.replica.partition import NOT_LED, Partition
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH, ZERO_UUID, TopicPartition

log = logging.getLogger(__name__)

RulesFor = Callable[[TopicImage], TopicRules]

WHOLE_TOPIC: Final = -1
"""In place of a partition: what concerns all partitions of a topic."""


Applying = Generator[None, bool | None, None]
"""Metadata being applied: it yields after each partition, and other work may run then."""

Ended = Callable[[Exception | None], None]
"""Called when something has ended, with its error."""


def _do_nothing() -> None:
    """The default callback after an image is applied."""


def _ignore(_: Exception | None) -> None:
    """The default callback of a deletion."""


class Copying(Protocol):
    """Replicates partitions from leaders on other brokers."""

    def copy(self, partition: Partition, topic_id: UUID) -> None:
        """Copy from the leader that the partition's state names, in its epoch, and no other."""

    def leave(self, tp: TopicPartition) -> None:
        """Stop copying a partition; its log is not touched from now on."""


class ReplicaManager:
    """Creates, leads and deletes the partitions that the image puts on this broker."""

    def __init__(
        self,
        broker_id: int,
        logs: LogDirectories,
        *,
        rules_for: RulesFor,
        clock_ms: Callable[[], int],
        flush_soon: Callable[[PartitionLog], None],
        context: ReplicationContext,
        copying: Copying | None = None,
        commits: GroupCommits | None = None,
        among_others: bool = False,
    ) -> None:
        """With `commits`, records count as replicated here only once they are on disk.

        Without `copying`, nothing is replicated from other brokers. With `among_others`, only
        StopReplica deletes partitions: an image may lack a topic because its znodes were removed by
        hand, and such a mistake must not cost records.
        """
        self._among_others = among_others
        self._copying = copying
        self._context = context
        self._broker_id = broker_id
        self._logs = logs
        self._rules_for = rules_for
        self._clock_ms = clock_ms
        self._flush_soon = flush_soon
        self._commits = commits
        # By topic and index: a TopicPartition is such a pair, and `led` does not even make one.
        self._partitions: dict[tuple[str, int], Partition] = {}
        #: what clients moved, by topic; of topics that have a partition here
        self.traffic: dict[str, BrokerTopicStats] = {}
        # They existed before this start, and no directory that can be read has them.
        self._out_of_reach: set[TopicPartition] = set()
        # Metadata to apply again, for applying it met an unexpected error.
        self._retries: dict[TopicPartition, Callable[[], None]] = {}
        # What was said of logs that were being cut, in its order.
        self._after_cut: dict[TopicPartition, list[Callable[[], None]]] = {}
        context.cut_ended = self._cut_ended
        #: called when more of an image has been done than when `on_image` returned
        self.applied_late: Callable[[], None] = _do_nothing
        #: partitions by topic whose last attempt failed, for whatever reason
        self._failed: dict[str, frozenset[int]] = {}
        self._started = False
        self._image = MetadataImage(cluster_id="")
        self._expected: Counter[TopicPartition] = Counter()
        #: in controlled shutdown: what this broker is not in sync with any more is not copied. It
        #: could not come back into the ISR, and leaders would only wait for it.
        self.stopping = False
        #: how often a log directory has changed its state
        self.reach_version = 0

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def leader(self, tp: TopicPartition, client_epoch: int = NO_EPOCH) -> Partition:
        """The partition, if this broker leads it in the epoch the client knows.

        Raises KafkaError with UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR,
        NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
        """
        partition = self._partitions.get(tp)
        if partition is None:
            raise self._why_missing(tp)
        partition.check_leader(client_epoch)
        return partition

    def readable(self, tp: TopicPartition, client_epoch: int = NO_EPOCH) -> Partition:
        """The partition, if consumers may read it here, from leader or follower (KIP-392).

        Raises KafkaError with UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR,
        REPLICA_NOT_AVAILABLE, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
        """
        partition = self._partitions.get(tp)
        if partition is None:
            raise self._why_missing(tp)
        partition.check_readable(client_epoch)
        return partition

    def log_end(self, tp: TopicPartition, leader_epoch: int) -> tuple[int, int]:
        """The latest epoch in a log and its end; raises as `readable` does."""
        log = self.readable(tp, leader_epoch).log
        return log.latest_epoch, log.log_end_offset

    def led(self, topic: str, index: int) -> Partition:
        """The partition, if this broker leads it; raises as `leader` does."""
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self._why_missing(TopicPartition(topic, index))
        if partition.state.leader != self._broker_id:
            partition.check_leader()
        return partition

    def expect(self, partitions: Iterable[TopicPartition]) -> None:
        """Answer NOT_LEADER_OR_FOLLOWER for partitions whose LeaderAndIsr is being processed.

        Other brokers may already publish this one as their leader, and creating a thousand logs
        takes a second. Call `expect_no_more` afterwards.
        """
        self._expected.update(partitions)

    def expect_no_more(self, partitions: Iterable[TopicPartition]) -> None:
        """The LeaderAndIsr request has been processed."""
        self._expected.subtract(partitions)
        self._expected += Counter()  # Leaves those that other requests still announce.

    def _why_missing(self, tp: TopicPartition) -> KafkaError:
        if tp in self._out_of_reach:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "its log directory is offline")
        if tp in self._expected or self._image.announced.partition(tp) is not None:
            # Another broker has it: the client must refresh its metadata (`getPartitionOrError`).
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def on_image(
        self, old: MetadataImage, new: MetadataImage
    ) -> Generator[None, bool | None, dict[str, KafkaError]]:
        """Create, lead, follow and delete partitions as the new image says.

        It yields after each partition: thousands of logs take seconds to create. The caller
        finishes one image before it begins the next.

        Only changed topics are touched. Returns the topics for which that failed, with the first
        error of each; the other partitions are not affected. Unexpected errors are left to
        `retry_failed`.
        """
        self._image = new
        failures: dict[str, KafkaError] = {}
        gone = old.brokers.keys() - new.brokers.keys()
        self._context.alive = new.brokers.keys()
        changed_defaults = old.broker_configs != new.broker_configs
        different = list(new.differences(old))
        for each in different:
            if each.before is not None and each.replaced:
                self._drop(each.before, failures)
        if changed_defaults:
            for topic in new.topics.values():
                yield from self._update(topic, failures, settings_changed=True)
        else:
            for each in different:
                yield from self._take_difference(each, failures)
        self._started = True
        if gone:
            each_isolated(
                list(self._partitions.values()),
                Partition.look_at_brokers,
                "ISR check for unregistered brokers",
                name=_tp_of,
            )
        return failures

    def _take_difference(self, each: TopicDifference, failures: dict[str, KafkaError]) -> Applying:
        topic, before = each.after, each.before
        if topic is None:
            return
        if each.numbers is None:
            changed = before is None or before.config != topic.config
            yield from self._update(topic, failures, settings_changed=changed)
            return
        # What could not be done before may be possible by now; some were of a topic of before.
        failed = self._failed.get(topic.name, frozenset())
        numbers = each.numbers | {it for it in failed if it < len(topic.partitions)}
        yield from self._update(topic, failures, settings_changed=False, numbers=numbers)

    def retry_failed(self) -> Applying:
        """Apply metadata again where that failed by an error that may pass; as `on_image` does.

        Raises the first new error at the end. An image that is applied meanwhile ends retries.
        """
        failures: dict[str, KafkaError] = {}
        retries = list(self._retries.items())
        for tp, work in retries:
            if self._retries.get(tp) is work:
                self._attempt(tp, work, failures)
                yield
        if retries:
            self.applied_late()
        for name, error in failures.items():
            raise KafkaError(error.code, f"Metadata of topic {name} is not applied: {error}")

    def shrink_isrs(self) -> None:
        """Request the removal of followers that lag for too long from the ISRs.

        Called every half of replica.lag.time.max.ms, as Apache does.
        """
        every = list(self._partitions.values())
        each_isolated(every, Partition.shrink_isr, "ISR expiration", name=_tp_of)

    def recheck_held(self) -> None:
        """Move high watermarks that wait for a silent replica outside the ISR.

        Such a replica is waited for until replica.lag.time.max.ms have passed. Without produce and
        fetch requests only this check notices that.
        """
        held, self._context.held = self._context.held, set()
        each_isolated(held, Partition.recheck_high_watermark, "High watermark check", name=_tp_of)

    def stop(self, tp: TopicPartition, *, delete: bool, ended: Ended = _ignore) -> bool:
        """Stop hosting a partition; its log is deleted, or left where it is.

        False while its log is being truncated: the partition is stopped afterwards, and `ended` is
        called with the error, or None. A deletion must not be confirmed before that, for a crash
        would leave the log behind. Raises KafkaError KAFKA_STORAGE_ERROR if a log to delete is in
        an offline directory.
        """
        if delete and self.is_out_of_reach(tp):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "its log directory is offline")
        # Metadata from before must not bring it back.
        self._retries.pop(tp, None)
        self._retries.pop(TopicPartition(tp.topic, WHOLE_TOPIC), None)
        partition = self._partitions.pop(tp, None)
        if partition is not None and self._copying is not None:
            self._copying.leave(tp)

        def stop_late() -> None:
            try:
                self._stop(tp, partition, delete=delete)
            except Exception as error:
                ended(error)
                raise
            ended(None)

        if self._put_off(tp, stop_late):
            return False
        self._stop(tp, partition, delete=delete)
        return True

    def _stop(self, tp: TopicPartition, partition: Partition | None, *, delete: bool) -> None:
        if partition is not None:
            partition.become(NOT_LED)
        if delete and tp in self._logs.logs:
            self._logs.delete(tp, self._clock_ms())

    def _put_off(self, tp: TopicPartition, work: Callable[[], None]) -> bool:
        """Queue work behind a truncation of the partition's log; False if none is under way.

        A truncation waits for a disk, for which the event loop must not wait. Later work on the
        same partition queues behind earlier work.
        """
        log = self._logs.logs.get(tp)
        if log is None or not log.busy:
            return False
        self._after_cut.setdefault(tp, []).append(work)
        return True

    def _cut_ended(self, tp: TopicPartition) -> None:
        """Do the work that was queued behind a truncation."""
        waiting = self._after_cut.pop(tp, [])
        for work in waiting:
            self._attempt(tp, work, {})
        if waiting:
            self.applied_late()

    def get(self, tp: TopicPartition) -> Partition | None:
        """The partition, if this broker has a replica of it that can be used or could."""
        return self._partitions.get(tp)

    def is_out_of_reach(self, tp: TopicPartition) -> bool:
        """Whether the partition has a replica here in an offline log directory."""
        partition = self._partitions.get(tp)
        if partition is None:
            return tp in self._out_of_reach
        return not partition.log.health.readable

    @property
    def all_usable(self) -> bool:
        """Whether every log directory takes records, so that every replica can be used."""
        return self._logs.all_writable

    def is_counted_out(self, tp: TopicPartition) -> bool:
        """Whether the controller must do without a replica that belongs on this broker."""
        partition = self._partitions.get(tp)
        return tp in self._out_of_reach if partition is None else partition.counted_out

    def is_retried(self, tp: TopicPartition) -> bool:
        """Whether the metadata of a partition failed to apply, by an error that may pass."""
        return tp in self._retries

    def counted_out_leaders(self) -> frozenset[TopicPartition]:
        """Partitions led here that others should lead: their log directory takes no records."""
        if self.all_usable:
            return frozenset()
        return frozenset(it.tp for it in self if it.is_leader and it.counted_out)

    def as_served(self, topic: TopicImage) -> TopicImage:
        """The topic with the replicas of this broker marked whose log directory is offline."""
        if not self._logs.has_offline:
            return topic
        partitions = tuple(
            replace(state, offline=(self._broker_id,))
            if self.is_out_of_reach(TopicPartition(topic.name, index))
            else state
            for index, state in enumerate(topic.partitions)
        )
        return replace(topic, partitions=partitions)

    def on_health(self, health: DirectoryHealth, image: MetadataImage) -> None:
        """Handle a changed log directory: answer waiting requests, create partitions."""
        self.reach_version += 1
        inside = [it for it in self._partitions.values() if it.log.health is health]
        if health.state is Health.ONLINE:
            for topic in image.topics.values():
                at_once(self._update(topic, {}, settings_changed=False))
            return
        spared = sum(it.counted_out for it in inside)
        log.warning(
            "Replicas offline: count=%d log.dir=%s; leaving the ISR of %d partitions",
            len(inside), health.path, spared,
        )  # fmt: skip
        if health.state is Health.OFFLINE:
            each_isolated(inside, Partition.wake, "Notification of an offline log", name=_tp_of)

    def _attempt(
        self,
        tp: TopicPartition,
        work: Callable[[], None],
        failures: dict[str, KafkaError],
        *,
        again: Callable[[], None] | None = None,
    ) -> None:
        """Do the work of one partition; it, or `again`, is retried after an error that may pass."""
        self._retries.pop(tp, None)
        if self._put_off(tp, work):
            return
        self._succeeded(tp)
        for failed in each_isolated((tp,), lambda _: work(), "Applying metadata"):
            if not failed.expected or _lacked_means(failed.cause):
                self._retries[tp] = again or work
            before = self._failed.get(tp.topic, frozenset())
            self._failed[tp.topic] = before | {tp.partition}
            failures.setdefault(tp.topic, failed.error)

    def _succeeded(self, tp: TopicPartition) -> None:
        left = self._failed.pop(tp.topic, frozenset()) - {tp.partition}
        if left:
            self._failed[tp.topic] = left

    def _update(
        self,
        topic: TopicImage,
        failures: dict[str, KafkaError],
        *,
        settings_changed: bool,
        numbers: Collection[int] | None = None,
    ) -> Applying:
        """Update the partitions of a topic that are on this broker: those numbers, or all."""
        if numbers is None or WHOLE_TOPIC in numbers:
            numbers = range(len(topic.partitions))
        found: list[TopicRules] = []

        def hold_each(rules: TopicRules) -> Applying:
            for index in numbers:
                state = topic.partitions[index]
                if self._broker_id in state.replicas:
                    tp = TopicPartition(topic.name, index)
                    hold = partial(self._hold, tp, topic, state, rules, settings_changed)
                    self._attempt(tp, hold, failures)
                    yield

        self._attempt(
            TopicPartition(topic.name, WHOLE_TOPIC),
            lambda: found.append(self._rules_for(topic)),
            failures,
            again=lambda: at_once(hold_each(self._rules_for(topic))),
        )
        for rules in found:
            yield from hold_each(rules)

    def _hold(
        self,
        tp: TopicPartition,
        topic: TopicImage,
        state: PartitionState,
        rules: TopicRules,
        settings_changed: bool,
    ) -> None:
        partition = self._partitions.get(tp)
        if partition is None:
            self._add(tp, topic, state, rules)
            return
        if settings_changed:
            partition.take_rules(rules)
        if partition.log.topic_id is None:
            partition.log.adopt_topic_id(topic.id)
        if state is not partition.state:
            self._become(partition, state, topic.id)

    def _add(
        self, tp: TopicPartition, topic: TopicImage, state: PartitionState, rules: TopicRules
    ) -> None:
        partition_log = self._logs.logs.get(tp)
        if partition_log is not None and not _is_of(topic, partition_log):
            # As Apache's brokers do at the start since 3.7: it must not be read as the new topic's.
            aside = self._logs.set_aside(tp, self._clock_ms())
            log.error(
                "Stray log of an earlier topic of that name: partition=%s kept as %s", tp, aside
            )
            partition_log = None
        if partition_log is None:
            hidden = not self._started and self._logs.has_offline
            if hidden or tp in self._out_of_reach or tp in self._logs.unopened:
                # An empty log in its place would be served as if the records had never been.
                self._out_of_reach.add(tp)
                return
            # Controllers before 2.8 give topics no id; one that a later controller gives is noted.
            topic_id = None if topic.id == ZERO_UUID else topic.id
            partition_log = self._logs.create(tp, rules.log_config, topic_id, self._clock_ms())
        elif partition_log.topic_id is None:
            partition_log.adopt_topic_id(topic.id)
        partition = Partition(
            self._broker_id,
            tp,
            log=partition_log,
            rules=rules,
            flush_soon=self._flush_soon,
            context=self._context,
            commits=self._commits,
            traffic=self.traffic.setdefault(tp.topic, BrokerTopicStats()),
        )
        self._become(partition, state, topic.id)
        self._partitions[tp] = partition

    def _become(self, partition: Partition, state: PartitionState, topic_id: UUID) -> None:
        copying = self._copying
        follows = state.leader not in (NO_LEADER, self._broker_id)
        follows = follows and not (self.stopping and self._broker_id not in state.isr)
        if copying is not None and not follows:
            copying.leave(partition.tp)
        partition.become(state)
        if copying is not None and follows and not partition.is_leader:
            copying.copy(partition, topic_id)

    def _drop(self, topic: TopicImage, failures: dict[str, KafkaError]) -> None:
        self._retries.pop(TopicPartition(topic.name, WHOLE_TOPIC), None)
        for index in range(len(topic.partitions)):
            tp = TopicPartition(topic.name, index)
            self._retries.pop(tp, None)
            self._out_of_reach.discard(tp)
            partition = self._partitions.pop(tp, None)
            if partition is not None:
                if self._copying is not None:
                    call_isolated((partial(self._copying.leave, tp),), "End of replication", tp)
                self._attempt(tp, partial(self._give_up, partition), failures)
        self.traffic.pop(topic.name, None)
        self._failed.pop(topic.name, None)

    def _give_up(self, partition: Partition) -> None:
        tp = partition.tp
        partition.become(NOT_LED)
        if not self._among_others and self._logs.logs.get(tp) is partition.log:
            self._logs.delete(tp, self._clock_ms())


def at_once(applying: Applying) -> None:
    """Apply to the end without a turn for other work."""
    for _ in applying:
        pass


def _lacked_means(error: Exception) -> bool:
    """Whether files failed though their directory has not: for want of descriptors, say."""
    cause = error.__cause__
    return isinstance(error, OSError) or (isinstance(cause, OSError) and lacks_means(cause))


def _tp_of(partition: Partition) -> TopicPartition:
    return partition.tp


def _is_of(topic: TopicImage, found: PartitionLog) -> bool:
    """Whether a log may be this topic's: controllers before 2.8 give no ids."""
    return found.topic_id is None or topic.id in (ZERO_UUID, found.topic_id)
