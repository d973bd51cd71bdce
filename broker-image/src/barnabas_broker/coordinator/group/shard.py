"""The groups of one partition of `__consumer_offsets`: requests in, results out.

A pure core: its inputs are the time of the wall clock, which is what records carry, a source
of member ids and the steady clock, which is what timers go by. Every request method returns a
`CoordinatorResult`; the shell appends its records, has each of them replayed here, and then hands
out its answers, before it handles the next request. `replay` is also how the groups are read back
from the log, and the only thing that changes offsets, makes an assignment hold, or ends a group.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from barnabas_broker.cluster.failures import chain_isolated, each_isolated, refusal
from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.group import commits
from barnabas_broker.coordinator.group.consumer import fencing, migration
from barnabas_broker.coordinator.group.consumer.classic_members import ClassicMembers
from barnabas_broker.coordinator.group.consumer.expressions import Expressions
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.heartbeat import Beat, Heartbeats
from barnabas_broker.coordinator.group.consumer.member import JOINING_EPOCH, ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, Kind
from barnabas_broker.coordinator.group.group import CONSUMERS, Group
from barnabas_broker.coordinator.group.joining import Join, Joining
from barnabas_broker.coordinator.group.limits import Limits
from barnabas_broker.coordinator.group.membership import Membership
from barnabas_broker.coordinator.group.memory import GROUP_BYTES
from barnabas_broker.coordinator.group.rebalancing import (
    CONSUMER_WAITS,
    Rebalancer,
    TimerKey,
    Wait,
    error,
)
from barnabas_broker.coordinator.group.records import (
    GroupRecord,
    OffsetRecord,
    PendingOffset,
    Record,
    TransactionEnd,
)
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.states import GroupEvent, GroupState
from barnabas_broker.coordinator.memory import Account
from barnabas_broker.coordinator.results import Producer
from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.group_values import GroupHeartbeat, GroupSync
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from barnabas_kafka.protocol.messages.delete_groups import DeletableGroupResult
from barnabas_kafka.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas_kafka.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
)
from barnabas_kafka.protocol.messages.sync_group import SyncGroupResponse
from barnabas_kafka.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

TOMBSTONES_MAX = 1000
"""Offsets that one result of a sweep deletes; their tombstones fit well into one batch."""


class Shard:
    """The groups that hash to one partition."""

    def __init__(
        self,
        limits: Limits,
        *,
        new_id: Callable[[], str],
        steady_ms: Callable[[], int],
        in_use: Account | None = None,
        expressions: Expressions | None = None,
    ) -> None:
        """`in_use` is the account of all groups of the broker; without it there is no other.

        `expressions` are those that any group subscribes to.
        """
        self.groups: dict[str, Group] = {}
        in_use = in_use or Account()
        self.account = Account(in_use)
        # The groups that have offsets in the open transaction of a producer.
        self._in_transactions: dict[int, set[str]] = {}
        self._rebalancer = Rebalancer(limits, steady_ms, in_use)
        self._joining = Joining(self._rebalancer, new_id)
        self._membership = Membership(self._rebalancer)
        self._heartbeats = Heartbeats(
            self._rebalancer, new_id, lambda name: self.groups.get(name), expressions
        )
        self._classic = ClassicMembers(self._rebalancer, self._heartbeats, new_id)

    @property
    def limits(self) -> Limits:
        """The settings in effect."""
        return self._rebalancer.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._rebalancer.limits = limits

    def on_image(self, image: MetadataImage) -> None:
        """Use this metadata from now on; groups compare it at their next heartbeat."""
        self._heartbeats.image = image

    # --- members

    def join(self, join: Join, now_ms: int) -> CoordinatorResult:
        """JoinGroup."""
        result = CoordinatorResult(now_ms)
        request = join.request
        group = self.groups.get(request.group_id)
        limits = self.limits
        if not limits.session_min_ms <= request.session_timeout_ms <= limits.session_max_ms:
            code = ErrorCode.INVALID_SESSION_TIMEOUT
            result.answer(join.waiter, error(code, request.member_id))
        elif group is None and request.member_id:
            code = ErrorCode.UNKNOWN_MEMBER_ID
            result.answer(join.waiter, error(code, request.member_id))
        elif not self._may_make(request.group_id):
            result.answer(join.waiter, error(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            self._join(self._made(request.group_id, now_ms), join, result)
            self._drop_if_unused(request.group_id)
        return result

    def _join(self, group: Group, join: Join, result: CoordinatorResult) -> None:
        if group.consumers is not None:
            if not group.is_empty:
                try:
                    self._classic.join(group.consumers, join, result)
                except KafkaError as fault:
                    result.answer(join.waiter, error(fault.code))
                return
            # The name is free to take: nothing but offsets is left of the group.
            before = group
            result.records += fencing.group_tombstones(group.consumers)
            group = self._renewed(group, result.now_ms)
            self._joining.join(group, join, result)
            result.refuse = lambda code, instead: self._take_back(before, join, code, instead)
            return
        self._joining.join(group, join, result)

    def _take_back(
        self, before: Group, join: Join, code: ErrorCode, instead: CoordinatorResult
    ) -> None:
        """Have the group again whose end could not be written."""
        self._rebalancer.forget_group(self.groups[before.id])
        self.groups[before.id].account.leave()
        self.groups[before.id] = before
        before.account.join(self.account)
        code = commits.group_write_error(code)
        instead.answer(join.waiter, error(code, join.request.member_id))

    def matching(self, group_id: str, subscribed: str) -> Iterator[None]:
        """Match what `consumer_heartbeat` is about to need; it decides the same without."""
        group = self.groups.get(group_id)
        return self._heartbeats.matching(None if group is None else group.consumers, subscribed)

    def consumer_heartbeat(self, beat: Beat, now_ms: int) -> CoordinatorResult:
        """ConsumerGroupHeartbeat (KIP-848)."""
        result = CoordinatorResult(now_ms)
        group = self.groups.get(beat.request.group_id)
        known = None if group is None else group.consumers
        try:
            if group is not None and known is None and beat.request.member_epoch == JOINING_EPOCH:
                if not group.is_empty:
                    known = self._upgrade(group, result)
                elif group.protocol_type is not None:
                    result.records.append(GroupRecord(group.id, None))
            self._heartbeats.beat(known, beat, result)
        except KafkaError as fault:
            result = CoordinatorResult(now_ms)
            result.answer(beat.waiter, refused_beat(fault))
        return result

    def _upgrade(self, group: Group, result: CoordinatorResult) -> ConsumerGroup:
        """Make a classic group one of the consumer protocol, and have its members join again."""
        migration.check_upgrade(group, self.limits)
        consumers, records = migration.upgraded(group, self._heartbeats.image)
        result.records += records
        code = ErrorCode.REBALANCE_IN_PROGRESS
        for member in group.members.values():
            # They stay parked until the records are replayed, for they may not be written.
            if member.joining is not None:
                result.answer(member.joining, error(code, member.id))
            if member.syncing is not None:
                result.answer(member.syncing, SyncGroupResponse(error_code=code))
        self._heartbeats.begin_sessions(consumers)
        return consumers

    def sync(self, request: GroupSync, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        """SyncGroup."""
        result = CoordinatorResult(now_ms)
        group = self.groups.get(request.group_id)
        if group is None:
            result.answer(waiter, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        elif group.consumers is not None:
            try:
                self._classic.sync(group.consumers, request, waiter, result)
            except KafkaError as fault:
                result.answer(waiter, SyncGroupResponse(error_code=fault.code))
        else:
            self._membership.sync(group, request, waiter, result)
        return result

    def assignment(self, request: GroupSync) -> SyncGroupResponse | None:
        """The answer to a SyncGroup that writes nothing: most come after the leader's."""
        group = self.groups.get(request.group_id)
        if group is None or group.consumers is not None:
            return None
        return self._membership.assignment(group, request)

    def heartbeat(self, request: GroupHeartbeat) -> ErrorCode:
        """Heartbeat; it never has anything written."""
        group = self.groups.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group.consumers is None:
            return self._membership.heartbeat(group, request)
        try:
            return self._classic.heartbeat(group.consumers, request)
        except KafkaError as fault:
            return fault.code

    def leave(self, request: LeaveGroupRequest, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        """LeaveGroup, as of version 3: an answer for each member."""
        result = CoordinatorResult(now_ms)
        group = self.groups.get(request.group_id)
        response = LeaveGroupResponse()
        gone: dict[str, ConsumerMember] = {}
        for leaver in request.members:
            try:
                code = self._left(group, leaver, gone, result)
            except Exception as error:
                code = refusal(error, "LeaveGroup", leaver.member_id).code
            response.members.append(
                MemberResponse(
                    member_id=leaver.member_id,
                    group_instance_id=leaver.group_instance_id,
                    error_code=code,
                )
            )
        self._drop_if_unused(request.group_id)
        result.answer(waiter, response)
        if gone and group is not None and group.consumers is not None:
            self._heartbeats.remove(group.consumers, gone.values(), result)
            result.refuse = lambda code, instead: instead.answer(
                waiter, LeaveGroupResponse(error_code=commits.group_write_error(code))
            )
        return result

    def _left(
        self,
        group: Group | None,
        leaver: MemberIdentity,
        gone: dict[str, ConsumerMember],
        result: CoordinatorResult,
    ) -> ErrorCode:
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group.consumers is not None:
            return self._leave_among_consumers(group.consumers, leaver, gone)
        return self._membership.leave(group, leaver, result)

    def _leave_among_consumers(
        self, group: ConsumerGroup, leaver: MemberIdentity, gone: dict[str, ConsumerMember]
    ) -> ErrorCode:
        try:
            member = self._classic.leaver(group, leaver)
        except KafkaError as fault:
            return fault.code
        gone[member.id] = member
        return ErrorCode.NONE

    # --- offsets

    def commit(
        self,
        request: OffsetCommitRequest,
        waiter: Waiter,
        now_ms: int,
        version: int = commits.EPOCHS_SINCE,
    ) -> CoordinatorResult:
        """OffsetCommit, for partitions that exist."""
        result = CoordinatorResult(now_ms)
        group = self.groups.get(request.group_id)
        if group is None and request.generation_id_or_member_epoch >= 0:
            code: ErrorCode | None = ErrorCode.ILLEGAL_GENERATION
        elif not self._may_make(request.group_id):
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        else:
            group = group or self._made(request.group_id, now_ms)
            code = commits.commit_fault(
                group,
                request.generation_id_or_member_epoch,
                request.member_id,
                request.group_instance_id,
                version=version,
            )
        if code is not None or group is None:
            code = code or ErrorCode.ILLEGAL_GENERATION
            self._drop_if_unused(request.group_id)
            result.answer(waiter, commits.refused_commit(request, code))
            return result
        self.renew_session(group, request.member_id)
        records, response = commits.commits(
            group.id, request, metadata_bytes_max=self.limits.metadata_bytes_max, now_ms=now_ms
        )
        result.records += records
        if not records:
            self._drop_if_unused(request.group_id)
        result.answer(waiter, response)
        result.refuse = lambda code, instead: instead.answer(
            waiter, commits.refused_commit(request, commits.commit_write_error(code))
        )
        return result

    def renew_session(self, group: Group, member_id: str) -> None:
        """Restart the session of a member of the classic protocol; others have none here."""
        member = group.members.get(member_id)
        if member is not None:
            self._rebalancer.touch(group, member)

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, waiter: Waiter, now_ms: int
    ) -> CoordinatorResult:
        """TxnOffsetCommit, for partitions that exist; they wait for the end of the transaction."""
        code: ErrorCode | None = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if self._may_make(request.group_id):
            group = self._made(request.group_id, now_ms)
            code = commits.transactional_commit_fault(group, request)
        if code is not None:
            self._drop_if_unused(request.group_id)
            result = CoordinatorResult(now_ms)
            result.answer(waiter, commits.refused_transactional_commit(request, code))
            return result
        records, response = commits.transactional_commits(
            request, metadata_bytes_max=self.limits.metadata_bytes_max, now_ms=now_ms
        )
        producer = Producer(request.producer_id, request.producer_epoch)
        result = CoordinatorResult(now_ms, records=list(records), producer=producer)
        result.answer(waiter, response)
        result.refuse = lambda code, instead: instead.answer(
            waiter,
            commits.refused_transactional_commit(request, commits.commit_write_error(code)),
        )
        return result

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition], waiter: Waiter, now_ms: int
    ) -> CoordinatorResult:
        """OffsetDelete: an answer for each partition (KIP-496)."""
        result = CoordinatorResult(now_ms)
        group = self.groups.get(group_id)
        if group is None:
            code = ErrorCode.GROUP_ID_NOT_FOUND
            result.answer(waiter, OffsetDeleteResponse(error_code=code))
            return result
        if not group.is_empty and group.subscriptions() is None:
            result.answer(waiter, OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))
            return result
        faults = {each: commits.deletion_fault(group, each) for each in partitions}
        doomed = [each for each, fault in faults.items() if fault is None]
        result.records += commits.tombstones(group, doomed)
        if doomed and group.consumers is None and _has_only(group, doomed):
            # As Kafka: a group of the classic protocol goes with its last offset.
            result.records += ending(group)
        result.answer(waiter, commits.deletions(faults))
        result.refuse = lambda code, instead: instead.answer(
            waiter, OffsetDeleteResponse(error_code=commits.write_error(code))
        )
        return result

    # --- groups

    def delete(self, group_id: str, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        """One group of DeleteGroups."""
        result = CoordinatorResult(now_ms)
        group = self.groups.get(group_id)
        code = ErrorCode.NONE
        if group is None:
            code = ErrorCode.GROUP_ID_NOT_FOUND
        elif not group.is_empty:
            code = ErrorCode.NON_EMPTY_GROUP
        else:
            result.records += commits.tombstones(group, group.offsets)
            result.records += ending(group)
        result.answer(waiter, DeletableGroupResult(group_id=group_id, error_code=code))
        result.refuse = lambda code, instead: instead.answer(
            waiter,
            DeletableGroupResult(group_id=group_id, error_code=commits.write_error(code)),
        )
        return result

    def expire(self, now_ms: int) -> Iterator[CoordinatorResult]:
        """Forget offsets that are kept no longer, and groups that nothing is left of."""

        def expire(group: Group) -> Iterator[CoordinatorResult]:
            due = commits.expired(group, retention_ms=self.limits.retention_ms, now_ms=now_ms)
            yield from _forget_offsets(group, list(due), now_ms)
            if _has_only(group, ()):
                yield CoordinatorResult(now_ms, records=ending(group))

        groups = list(self.groups.values())
        yield from chain_isolated(groups, expire, "Expiration", name=_id_of)

    def forget_topics(self, names: Collection[str], now_ms: int) -> Iterator[CoordinatorResult]:
        """Delete the offsets of topics that are no more, and groups that nothing is left of.

        Kafka's `GroupCoordinator.handleDeletedPartitions`; groups of the consumer protocol stay
        until the next expiration, as in `GroupCoordinatorService.onPartitionsDeleted`.
        """

        def forget(group: Group) -> Iterator[CoordinatorResult]:
            gone = [partition for partition in group.offsets if partition.topic in names]
            yield from _forget_offsets(group, gone, now_ms)
            if group.consumers is None and _has_only(group, ()):
                yield CoordinatorResult(now_ms, records=ending(group))

        groups = list(self.groups.values())
        yield from chain_isolated(groups, forget, "Deletion of offsets", name=_id_of)

    # --- time

    @property
    def next_ms(self) -> int | None:
        """A time of the steady clock before which `tick` has nothing to do; None: it never has."""
        return self._rebalancer.timers.next_ms

    def tick(self, now_ms: int) -> CoordinatorResult | None:
        """Do the first thing that is due; None when nothing is. Call until then."""
        key = self._rebalancer.timers.pop_due()
        if key is None:
            return None
        result = CoordinatorResult(now_ms)
        group = self.groups.get(key.group_id)
        if group is not None:
            self._time_is_over(group, key, result)
            self._drop_if_unused(key.group_id)
        return result

    def _time_is_over(self, group: Group, key: TimerKey, result: CoordinatorResult) -> None:
        if key.wait in CONSUMER_WAITS:
            if group.consumers is not None:
                self._heartbeats.miss(group.consumers, key, result)
        elif key.wait is Wait.JOIN:
            self._rebalancer.join_time_is_over(group, result)
        elif key.wait is Wait.SYNC:
            self._rebalancer.sync_time_is_over(group, result)
        elif key.wait is Wait.PENDING:
            self._rebalancer.forget_pending(group, key.member_id, result)
        else:
            member = group.members.get(key.member_id)
            # One that waits for us is not expected to send; its answer restarts its session.
            if member is not None and not member.waits:
                self._rebalancer.remove(group, member, result)

    # --- state

    def replay(self, record: Record, now_ms: int) -> None:
        """Make true what a record says, whether it was just appended or is read back."""
        if isinstance(record, ConsumerRecord):
            self._replay_consumer(record, now_ms)
            return
        if isinstance(record, GroupRecord):
            if record.metadata is None:
                self._end(record.group_id, now_ms)
            else:
                group = self._made(record.group_id, now_ms)
                if group.consumers is not None:
                    group.consumers.account.leave()
                    group.consumers = None
                group.restore(record.metadata)
        elif isinstance(record, OffsetRecord):
            self._replay_offset(record, now_ms)
        elif isinstance(record, PendingOffset):
            offset = record.offset
            if offset.committed is not None:
                pending = self._made(offset.group_id, now_ms).pending_offsets
                pending.add(record.producer_id, offset.partition, offset.committed)
                self._in_transactions.setdefault(record.producer_id, set()).add(offset.group_id)
        else:
            self._end_transaction(record)

    def _replay_offset(self, record: OffsetRecord, now_ms: int) -> None:
        group = self.groups.get(record.group_id)
        if record.committed is not None:
            group = group or self._made(record.group_id, now_ms)
            group.offsets[record.partition] = record.committed
        if group is not None:
            if record.committed is None:
                group.offsets.pop(record.partition, None)
            group.pending_offsets.overtake(record.partition)

    def _end_transaction(self, end: TransactionEnd) -> None:
        for group_id in self._in_transactions.pop(end.producer_id, ()):
            group = self.groups.get(group_id)
            if group is None:
                continue
            if end.committed:
                group.offsets.update(group.pending_offsets.commit(end.producer_id))
            else:
                group.pending_offsets.abort(end.producer_id)

    def _replay_consumer(self, record: ConsumerRecord, now_ms: int) -> None:
        group = self.groups.get(record.group_id)
        if record.value is None and (group is None or group.consumers is None):
            return
        if record.kind is Kind.GROUP and record.value is None:
            self._end(record.group_id, now_ms)
            return
        group = self._made(record.group_id, now_ms)
        if group.consumers is None:
            group.consumers = ConsumerGroup(group.id, whole=group.account)
            group.protocol_type = CONSUMERS
        assert group.consumers.id == record.group_id, violated("a record is of its group")
        group.consumers.replay(record)

    def _end(self, group_id: str, now_ms: int) -> None:
        """Let a group end; one with offsets lives on as nothing but these."""
        gone = self.groups.get(group_id)
        if gone is None:
            return
        gone.happens(GroupEvent.ENDED, now_ms)
        assert gone.id == group_id, violated("groups are kept by their ids")
        self._rebalancer.forget_group(gone)
        if gone.offsets or gone.pending_offsets:
            self._renewed(gone, now_ms)
        else:
            self._drop(gone)

    def _drop(self, group: Group) -> None:
        """Forget a group, and give back what it took."""
        assert self.groups.get(group.id) is group, violated("only a group that lives ends")
        group.account.leave()
        del self.groups[group.id]

    def _drop_if_unused(self, group_id: str) -> None:
        """Forget a group that only a refused request, or an unused id, had made."""
        group = self.groups.get(group_id)
        if (
            group is not None
            and group.state is GroupState.EMPTY
            and group.protocol_type is None
            and group.consumers is None
            and not (group.pending or group.offsets or group.pending_offsets)
        ):
            self._drop(group)

    def _renewed(self, group: Group, now_ms: int) -> Group:
        """A group of no protocol with the offsets of another, in its place."""
        group.account.leave()
        renewed = Group(group.id, now_ms=now_ms, whole=self.account)
        self.groups[group.id] = renewed
        renewed.offsets = group.offsets
        assert renewed.is_empty, violated("a group that begins again has no members")
        renewed.pending_offsets = group.pending_offsets
        return renewed

    def loaded(self, now_ms: int) -> Iterator[CoordinatorResult]:
        """Begin the sessions of members that were read back; call once all records are."""
        for group in list(self.groups.values()):
            if group.state is GroupState.EMPTY and group.protocol_type is None:
                if not group.offsets and not group.pending_offsets:
                    self._drop(group)
                continue
            if group.consumers is not None:
                self._heartbeats.begin_sessions(group.consumers)
            for member in group.members.values():
                self._rebalancer.touch(group, member)
            if len(group.members) > self.limits.members_max:
                result = CoordinatorResult(now_ms)
                self._rebalancer.begin(group, result)
                yield result

    def resign(self, now_ms: int) -> CoordinatorResult:
        """Answer all waiting members with NOT_COORDINATOR, and drop all groups."""
        result = CoordinatorResult(now_ms)

        def refuse(group: Group) -> None:
            for member in group.members.values():
                if member.joining is not None:
                    result.answer(member.joining, error(ErrorCode.NOT_COORDINATOR, member.id))
                if member.syncing is not None:
                    refused = SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
                    result.answer(member.syncing, refused)

        each_isolated(self.groups.values(), refuse, "Resignation", name=_id_of)
        self.groups = {}
        self._in_transactions = {}
        self.account.leave()
        assert self.account.held >= 0, violated("memory is given back once")
        self.account = Account()
        return result

    def _may_make(self, group_id: str) -> bool:
        """Whether there is a group of this name, or room for one."""
        return group_id in self.groups or self._rebalancer.has_room(GROUP_BYTES + len(group_id))

    def _made(self, group_id: str, now_ms: int) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, now_ms=now_ms, whole=self.account)
        assert group.state is not GroupState.DEAD, violated("an ended group is out of reach")
        return group


def _has_only(group: Group, offsets: Collection[TopicPartition]) -> bool:
    """Whether nothing is left of a group without these offsets."""
    left = group.pending or group.pending_offsets or group.offsets.keys() - offsets
    return group.is_empty and not left


def ending(group: Group) -> list[Record]:
    """What ends a group without members."""
    if group.consumers is None:
        return [GroupRecord(group.id, None)]
    return [*fencing.group_tombstones(group.consumers)]


def refused_beat(fault: KafkaError) -> ConsumerGroupHeartbeatResponse:
    """A refused ConsumerGroupHeartbeat."""
    return ConsumerGroupHeartbeatResponse(error_code=fault.code, error_message=fault.message)


def _id_of(group: Group) -> str:
    return group.id


def _forget_offsets(
    group: Group, gone: Sequence[TopicPartition], now_ms: int
) -> Iterator[CoordinatorResult]:
    """Delete these offsets of a group, so many in one result."""
    for start in range(0, len(gone), TOMBSTONES_MAX):
        result = CoordinatorResult(now_ms)
        result.records += commits.tombstones(group, gone[start : start + TOMBSTONES_MAX])
        yield result
