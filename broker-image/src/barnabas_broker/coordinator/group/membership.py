"""SyncGroup, Heartbeat and LeaveGroup: what members do between two rebalances."""

from barnabas_broker.coordinator.group.commits import group_write_error
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.rebalancing import Rebalancer, answer_sync
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.group_values import GroupHeartbeat, GroupSync
from barnabas_kafka.protocol.messages.leave_group import MemberIdentity
from barnabas_kafka.protocol.messages.sync_group import SyncGroupResponse


class Membership:
    """Decides on the requests of members in a generation."""

    def __init__(self, rebalancer: Rebalancer) -> None:
        self._rebalancer = rebalancer

    def sync(
        self,
        group: Group,
        request: GroupSync,
        waiter: Waiter,
        result: CoordinatorResult,
    ) -> None:
        """Hand out an assignment, or park the request until the leader has sent it."""
        known = self.assignment(group, request)
        if known is not None:
            result.answer(waiter, known)
            return
        member = group.members[request.member_id]
        assert group.state is GroupState.COMPLETING_REBALANCE, violated(
            "an assignment is waited for while the leader makes it"
        )
        member.syncing = waiter
        if group.leader_id == member.id:
            self._assign(group, request, result)

    def assignment(self, group: Group, request: GroupSync) -> SyncGroupResponse | None:
        """What the leader has sent for a member, or a refusal; None while that is to come."""
        code = _sync_fault(group, request)
        if code is not None:
            return SyncGroupResponse(error_code=code)
        member = group.members[request.member_id]
        self._rebalancer.synced(group, member)
        if group.state is not GroupState.STABLE:
            return None
        assert member.id not in group.unsynced, violated("a synced member is not waited for")
        self._rebalancer.touch(group, member)
        return _assigned(group, member.assignment)

    def _assign(self, group: Group, request: GroupSync, result: CoordinatorResult) -> None:
        """Write the leader's assignment; members it forgot get an empty one."""
        sent = dict(request.assignments)
        assert group.leader_id == request.member_id, violated("only the leader assigns")
        result.records.append(group.record(sent))
        waiting = [member for member in group.members.values() if member.syncing is not None]
        waiters = [(member, member.syncing) for member in waiting]
        for member in waiting:
            self._rebalancer.touch(group, member)
            answer_sync(member, result, _assigned(group, sent.get(member.id, b"")))

        def refuse(code: ErrorCode, instead: CoordinatorResult) -> None:
            for member, waiter in waiters:
                member.syncing = waiter
            self._rebalancer.fail_sync(group, group_write_error(code), instead)
            self._rebalancer.begin(group, instead)

        result.refuse = refuse

    def heartbeat(self, group: Group, request: GroupHeartbeat) -> ErrorCode:
        """Prolong a member's session; says when it must join again."""
        code = group.check_member(request.member_id, request.group_instance_id)
        if code is not None:
            return code
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state is GroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._rebalancer.touch(group, group.members[request.member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, group: Group, leaver: MemberIdentity, result: CoordinatorResult) -> ErrorCode:
        """Take one member out: by its id, or a static one by its instance id alone."""
        member_id = leaver.member_id
        if not member_id:
            member_id = group.static.get(leaver.group_instance_id or "", "")
            if not member_id:
                return ErrorCode.UNKNOWN_MEMBER_ID
        elif member_id in group.pending:
            self._rebalancer.forget_pending(group, member_id, result)
            return ErrorCode.NONE
        else:
            code = group.check_member(member_id, leaver.group_instance_id)
            if code is not None:
                return code
        assert member_id in group.members, violated("only members leave")
        self._rebalancer.remove(group, group.members[member_id], result)
        return ErrorCode.NONE


def _sync_fault(group: Group, request: GroupSync) -> ErrorCode | None:
    code = group.check_member(request.member_id, request.group_instance_id)
    if code is not None:
        return code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    wanted_type, wanted = request.protocol_type, request.protocol_name
    if wanted_type not in (None, group.protocol_type) or wanted not in (None, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def _assigned(group: Group, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )
