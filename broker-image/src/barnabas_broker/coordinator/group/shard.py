"""The groups of one partition of `__consumer_offsets`: requests in, turns out.

A pure core: it is told the time, and given a source of member ids. Every request method returns a
`Turn`; the shell appends its records, has each of them replayed here, and then hands out its
answers, before it begins the next turn. `replay` is also how the groups are read back from the
log, and the only thing that changes offsets, makes an assignment hold, or ends a group.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from barnabas_broker.coordinator.group import commits
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.joining import Join, Joining
from barnabas_broker.coordinator.group.limits import Limits
from barnabas_broker.coordinator.group.membership import Membership
from barnabas_broker.coordinator.group.rebalancing import Rebalancer, TimerKey, Wait, error
from barnabas_broker.coordinator.group.records import GroupRecord, Record
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.group.turns import Turn, Waiter
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.delete_groups import DeletableGroupResult
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from barnabas_kafka.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas_kafka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

TOMBSTONES_MAX = 1000
"""Offsets that one turn of a sweep deletes; their tombstones fit well into one batch."""


class Shard:
    """The groups that hash to one partition."""

    def __init__(self, limits: Limits, *, new_id: Callable[[], str]) -> None:
        self.groups: dict[str, Group] = {}
        self._rebalancer = Rebalancer(limits)
        self._joining = Joining(self._rebalancer, new_id)
        self._membership = Membership(self._rebalancer)

    @property
    def limits(self) -> Limits:
        """The settings in effect."""
        return self._rebalancer.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._rebalancer.limits = limits

    # --- members

    def join(self, join: Join, now_ms: int) -> Turn:
        """JoinGroup."""
        turn = Turn(now_ms)
        request = join.request
        group = self.groups.get(request.group_id)
        limits = self.limits
        if not limits.session_min_ms <= request.session_timeout_ms <= limits.session_max_ms:
            code = ErrorCode.INVALID_SESSION_TIMEOUT
            turn.answer(join.waiter, error(code, request.member_id))
        elif group is None and request.member_id:
            code = ErrorCode.UNKNOWN_MEMBER_ID
            turn.answer(join.waiter, error(code, request.member_id))
        else:
            self._joining.join(self._made(request.group_id, now_ms), join, turn)
        return turn

    def sync(self, request: SyncGroupRequest, waiter: Waiter, now_ms: int) -> Turn:
        """SyncGroup."""
        turn = Turn(now_ms)
        group = self.groups.get(request.group_id)
        if group is None:
            turn.answer(waiter, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self._membership.sync(group, request, waiter, turn)
        return turn

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        """Heartbeat; it never has anything written."""
        group = self.groups.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self._membership.heartbeat(group, request, now_ms)

    def leave(self, request: LeaveGroupRequest, waiter: Waiter, now_ms: int) -> Turn:
        """LeaveGroup, as of version 3: an answer for each member."""
        turn = Turn(now_ms)
        group = self.groups.get(request.group_id)
        response = LeaveGroupResponse()
        for leaver in request.members:
            code = ErrorCode.UNKNOWN_MEMBER_ID
            if group is not None:
                code = self._membership.leave(group, leaver, turn)
            response.members.append(
                MemberResponse(
                    member_id=leaver.member_id,
                    group_instance_id=leaver.group_instance_id,
                    error_code=code,
                )
            )
        turn.answer(waiter, response)
        return turn

    # --- offsets

    def commit(self, request: OffsetCommitRequest, waiter: Waiter, now_ms: int) -> Turn:
        """OffsetCommit, for partitions that exist."""
        turn = Turn(now_ms)
        group = self.groups.get(request.group_id)
        if group is None and request.generation_id_or_member_epoch >= 0:
            code: ErrorCode | None = ErrorCode.ILLEGAL_GENERATION
        else:
            group = group or self._made(request.group_id, now_ms)
            code = commits.commit_fault(group, request)
        if code is not None or group is None:
            code = code or ErrorCode.ILLEGAL_GENERATION
            turn.answer(waiter, commits.refused_commit(request, code))
            return turn
        member = group.members.get(request.member_id)
        if member is not None:
            self._rebalancer.touch(group, member, now_ms)
        records, response = commits.commits(
            group.id, request, metadata_bytes_max=self.limits.metadata_bytes_max, now_ms=now_ms
        )
        turn.records += records
        turn.answer(waiter, response)
        turn.refuse = lambda code, instead: instead.answer(
            waiter, commits.refused_commit(request, commits.commit_write_error(code))
        )
        return turn

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition], waiter: Waiter, now_ms: int
    ) -> Turn:
        """OffsetDelete: an answer for each partition (KIP-496)."""
        turn = Turn(now_ms)
        group = self.groups.get(group_id)
        if group is None:
            code = ErrorCode.GROUP_ID_NOT_FOUND
            turn.answer(waiter, OffsetDeleteResponse(error_code=code))
            return turn
        if group.state is not GroupState.EMPTY and group.subscriptions() is None:
            turn.answer(waiter, OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))
            return turn
        faults = {each: commits.deletion_fault(group, each) for each in partitions}
        doomed = [each for each, fault in faults.items() if fault is None]
        turn.records += commits.tombstones(group, doomed)
        turn.answer(waiter, deletions(faults))
        turn.refuse = lambda code, instead: instead.answer(
            waiter, OffsetDeleteResponse(error_code=commits.write_error(code))
        )
        return turn

    # --- groups

    def delete(self, group_id: str, waiter: Waiter, now_ms: int) -> Turn:
        """One group of DeleteGroups."""
        turn = Turn(now_ms)
        group = self.groups.get(group_id)
        code = ErrorCode.NONE
        if group is None:
            code = ErrorCode.GROUP_ID_NOT_FOUND
        elif group.state is not GroupState.EMPTY:
            code = ErrorCode.NON_EMPTY_GROUP
        else:
            turn.records += commits.tombstones(group, group.offsets)
            turn.records.append(GroupRecord(group_id, None))
        turn.answer(waiter, DeletableGroupResult(group_id=group_id, error_code=code))
        turn.refuse = lambda code, instead: instead.answer(
            waiter,
            DeletableGroupResult(group_id=group_id, error_code=commits.write_error(code)),
        )
        return turn

    def expire(self, now_ms: int) -> Iterator[Turn]:
        """Forget offsets that are kept no longer, and groups that nothing is left of."""
        for group in list(self.groups.values()):
            due = list(commits.expired(group, retention_ms=self.limits.retention_ms, now_ms=now_ms))
            for start in range(0, len(due), TOMBSTONES_MAX):
                turn = Turn(now_ms)
                turn.records += commits.tombstones(group, due[start : start + TOMBSTONES_MAX])
                yield turn
            if group.state is GroupState.EMPTY and not group.offsets and not group.pending:
                yield Turn(now_ms, records=[GroupRecord(group.id, None)])

    def forget_topics(self, names: Collection[str], now_ms: int) -> Iterator[Turn]:
        """Delete the offsets of topics that are no more."""
        for group in list(self.groups.values()):
            gone = [partition for partition in group.offsets if partition.topic in names]
            for start in range(0, len(gone), TOMBSTONES_MAX):
                turn = Turn(now_ms)
                turn.records += commits.tombstones(group, gone[start : start + TOMBSTONES_MAX])
                yield turn

    # --- time

    @property
    def next_ms(self) -> int | None:
        """A time before which `tick` has nothing to do; None when it never has."""
        return self._rebalancer.timers.next_ms

    def tick(self, now_ms: int) -> Turn | None:
        """Do the first thing that is due; None when nothing is. Call until then."""
        key = self._rebalancer.timers.pop_due(now_ms)
        if key is None:
            return None
        turn = Turn(now_ms)
        group = self.groups.get(key.group_id)
        if group is not None:
            self._time_is_over(group, key, turn)
        return turn

    def _time_is_over(self, group: Group, key: TimerKey, turn: Turn) -> None:
        if key.wait is Wait.JOIN:
            self._rebalancer.join_time_is_over(group, turn)
        elif key.wait is Wait.SYNC:
            self._rebalancer.sync_time_is_over(group, turn)
        elif key.wait is Wait.PENDING:
            self._rebalancer.forget_pending(group, key.member_id, turn)
        else:
            member = group.members.get(key.member_id)
            # One that waits for us is not expected to speak; its answer begins its session anew.
            if member is not None and not member.waits:
                self._rebalancer.remove(group, member, turn)

    # --- state

    def replay(self, record: Record, now_ms: int) -> None:
        """Make true what a record says, whether it was just appended or is read back."""
        if isinstance(record, GroupRecord):
            if record.metadata is None:
                gone = self.groups.pop(record.group_id, None)
                if gone is not None:
                    gone.state = GroupState.DEAD
            else:
                self._made(record.group_id, now_ms).restore(record.metadata)
            return
        if record.committed is not None:
            self._made(record.group_id, now_ms).offsets[record.partition] = record.committed
            return
        group = self.groups.get(record.group_id)
        if group is not None:
            group.offsets.pop(record.partition, None)

    def loaded(self, now_ms: int) -> Iterator[Turn]:
        """Begin the sessions of members that were read back; call once all records are."""
        for group in list(self.groups.values()):
            if group.state is GroupState.EMPTY and group.protocol_type is None:
                if not group.offsets:
                    del self.groups[group.id]
                continue
            for member in group.members.values():
                self._rebalancer.touch(group, member, now_ms)
            if len(group.members) > self.limits.members_max:
                turn = Turn(now_ms)
                self._rebalancer.begin(group, turn)
                yield turn

    def resign(self, now_ms: int) -> Turn:
        """Send everybody who waits to look for another coordinator, and forget all groups."""
        turn = Turn(now_ms)
        for group in self.groups.values():
            for member in group.members.values():
                if member.joining is not None:
                    turn.answer(member.joining, error(ErrorCode.NOT_COORDINATOR, member.id))
                if member.syncing is not None:
                    refused = SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
                    turn.answer(member.syncing, refused)
        self.groups = {}
        return turn

    def _made(self, group_id: str, now_ms: int) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, now_ms=now_ms)
        return group


def deletions(faults: Mapping[TopicPartition, ErrorCode | None]) -> OffsetDeleteResponse:
    """The answer of OffsetDelete that says this of each partition."""
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for (name, partition), fault in faults.items():
        topic = topics.setdefault(name, OffsetDeleteResponseTopic(name=name))
        topic.partitions.append(
            OffsetDeleteResponsePartition(
                partition_index=partition, error_code=fault or ErrorCode.NONE
            )
        )
    return OffsetDeleteResponse(topics=list(topics.values()))
