"""The steps of a rebalance: members join again, and what follows when all have.

As in Kafka's GroupCoordinator (`prepareRebalance`, `DelayedJoin`, `DelayedSync`):

* A rebalance begins from EMPTY with the initial delay, in which no arrival completes it;
  while the group is new, each newcomer prolongs it by another delay, up to the rebalance timeout.
* Any other rebalance ends when all members have joined and no id that was given out is missing,
  or at the rebalance timeout: dynamic members that have not come are dropped, static ones stay
  until their session ends.
* Members that do not send SyncGroup within the rebalance timeout are dropped, too.
"""

from collections.abc import Callable
from enum import IntEnum, auto
from typing import NamedTuple

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.limits import Limits
from barnabas_broker.coordinator.group.members import Member
from barnabas_broker.coordinator.group.results import CoordinatorResult
from barnabas_broker.coordinator.group.states import GroupEvent, GroupState, may_rebalance
from barnabas_broker.coordinator.memory import Account, has_room
from barnabas_broker.coordinator.timers import Timers
from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas_kafka.protocol.messages.sync_group import SyncGroupResponse


class Wait(IntEnum):
    """What a group's timers are for; a number, because those are hashed fastest."""

    JOIN = auto()  # the end of a rebalance, or of a round of the initial delay
    SYNC = auto()  # the last moment for SyncGroup
    SESSION = auto()  # a member's next heartbeat
    PENDING = auto()  # the first join under an id that was given out
    CONSUMER = auto()  # the next heartbeat of a member of the consumer protocol
    REVOCATION = auto()  # the last moment for it to give partitions up
    CLASSIC_JOIN = auto()  # the last moment for a classic member among such to join again
    CLASSIC_SYNC = auto()  # and to fetch its assignment


CONSUMER_WAITS = (Wait.CONSUMER, Wait.REVOCATION, Wait.CLASSIC_JOIN, Wait.CLASSIC_SYNC)
"""What is waited for in groups of the consumer protocol."""


class TimerKey(NamedTuple):
    """Whose timer it is; `member_id` is empty for those of the whole group."""

    wait: Wait
    group_id: str
    member_id: str = ""


class Rebalancer:
    """Takes groups through rebalances; `limits` may be replaced at any time.

    `in_use` is the account of all groups of the broker.
    """

    def __init__(self, limits: Limits, steady_ms: Callable[[], int], in_use: Account) -> None:
        self.limits = limits
        self.timers: Timers[TimerKey] = Timers(steady_ms)
        self._in_use = in_use

    def has_room(self, more: int) -> bool:
        """Whether the groups of the broker may take so many bytes more."""
        return has_room(self._in_use.held, more, self.limits.memory_bytes_max)

    # --- members

    def touch(self, group: Group, member: Member) -> None:
        """Restart a member's session: it sent a request, or is answered now."""
        key = TimerKey(Wait.SESSION, group.id, member.id)
        self.timers.start(key, member.session_timeout_ms)

    def remove(self, group: Group, member: Member, result: CoordinatorResult) -> None:
        """Let a member go and have the others share what it read."""
        self._forget(group, member, result)
        if group.state is GroupState.PREPARING_REBALANCE:
            self.complete_if_all_joined(group, result)
        else:
            self.begin(group, result)

    def forget_pending(self, group: Group, member_id: str, result: CoordinatorResult) -> None:
        """Drop a member id that was given out and not used."""
        group.forget(member_id)
        self.timers.cancel(TimerKey(Wait.PENDING, group.id, member_id))
        self.complete_if_all_joined(group, result)

    def forget_group(self, group: Group) -> None:
        """Drop all pending ids and timers of a group."""
        for wait in (Wait.JOIN, Wait.SYNC):
            self.timers.cancel(TimerKey(wait, group.id))
        for member_id in group.members:
            self.timers.cancel(TimerKey(Wait.SESSION, group.id, member_id))
        for member_id in group.pending:
            self.timers.cancel(TimerKey(Wait.PENDING, group.id, member_id))

    def _forget(self, group: Group, member: Member, result: CoordinatorResult) -> None:
        answer_join(member, result, error(ErrorCode.UNKNOWN_MEMBER_ID))
        answer_sync(member, result, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.id)
        assert member.joining is None, violated("a leaving member has been answered")
        assert member.syncing is None, violated("a leaving member has been answered")
        self.timers.cancel(TimerKey(Wait.SESSION, group.id, member.id))

    # --- steps

    def begin(self, group: Group, result: CoordinatorResult) -> None:
        """Call the members together, unless that goes on already."""
        if not may_rebalance(group.state):
            return
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.fail_sync(group, ErrorCode.REBALANCE_IN_PROGRESS, result)
        self.timers.cancel(TimerKey(Wait.SYNC, group.id))
        from_empty = group.state is GroupState.EMPTY
        assert group.remaining_delay_ms is None, violated("a rebalance has no delay left over")
        group.happens(GroupEvent.REBALANCE_BEGUN, result.now_ms)
        if not from_empty:
            self._time_join(group, group.rebalance_timeout_ms)
            self.complete_if_all_joined(group, result)
            return
        delay_ms = self.limits.initial_delay_ms
        if delay_ms <= 0:
            self.complete(group, result)
            return
        group.remaining_delay_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.newcomer = False
        self._time_join(group, delay_ms)

    def complete_if_all_joined(self, group: Group, result: CoordinatorResult) -> None:
        """End the rebalance if no member is missing and it is not in its initial delay."""
        preparing = group.state is GroupState.PREPARING_REBALANCE
        if preparing and group.remaining_delay_ms is None and group.all_joined:
            self.complete(group, result)

    def join_time_is_over(self, group: Group, result: CoordinatorResult) -> None:
        """The timer of a rebalance has run out: prolong the initial delay, or end it."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        remaining_ms = group.remaining_delay_ms
        if remaining_ms and group.newcomer:
            group.newcomer = False
            delay_ms = min(self.limits.initial_delay_ms, remaining_ms)
            group.remaining_delay_ms = remaining_ms - delay_ms
            assert group.remaining_delay_ms >= 0, violated("the delay comes to an end")
            self._time_join(group, delay_ms)
        else:
            self.complete(group, result)

    def complete(self, group: Group, result: CoordinatorResult) -> None:
        """Start a generation of the joined members, and answer them."""
        group.remaining_delay_ms = None
        self.timers.cancel(TimerKey(Wait.JOIN, group.id))
        for member in list(group.members.values()):
            if member.joining is None and not member.is_static:
                self._forget(group, member, result)
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none has come: their sessions decide.
            self._time_join(group, group.rebalance_timeout_ms)
            return
        assert group.state is GroupState.PREPARING_REBALANCE, violated(
            "a generation consists of the members that were asked to join"
        )
        group.generation += 1
        group.unsynced = set(group.members)
        if not group.members:
            group.protocol = None
            group.happens(GroupEvent.NO_MEMBER_JOINED, result.now_ms)
            result.records.append(group.record({}))
            return
        group.protocol = group.elect_protocol()
        assert group.leader_id in group.members, violated("the leader of a group is a member")
        group.happens(GroupEvent.MEMBERS_JOINED, result.now_ms)
        for member in group.members.values():
            answer_join(member, result, generation_for(group, member))
            self.touch(group, member)
            assert member.joining is None, violated("every member that joined has been answered")
            member.is_new = False
        key = TimerKey(Wait.SYNC, group.id)
        self.timers.start(key, group.rebalance_timeout_ms)

    def sync_time_is_over(self, group: Group, result: CoordinatorResult) -> None:
        """Drop the members that have not sent SyncGroup, and begin again without them."""
        may_sync = group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        if not may_sync or not group.unsynced:
            return
        assert group.unsynced <= group.members.keys(), violated("only members are to sync")
        for member_id in sorted(group.unsynced):
            self._forget(group, group.members[member_id], result)
        self.begin(group, result)

    def synced(self, group: Group, member: Member) -> None:
        """A member has sent SyncGroup."""
        assert group.members.get(member.id) is member, violated("only members sync")
        group.unsynced.discard(member.id)
        if not group.unsynced:
            self.timers.cancel(TimerKey(Wait.SYNC, group.id))

    def fail_sync(self, group: Group, code: ErrorCode, result: CoordinatorResult) -> None:
        """Answer every SyncGroup that waits for an assignment with an error."""
        for member in group.members.values():
            member.assignment = b""
            group.weigh(member)
            if member.syncing is not None:
                self.touch(group, member)
            answer_sync(member, result, SyncGroupResponse(error_code=code))

            assert member.syncing is None, violated(
                "no member waits for a rebalance that does not come"
            )

    def _time_join(self, group: Group, delay_ms: int) -> None:
        self.timers.start(TimerKey(Wait.JOIN, group.id), delay_ms)


def answer_join(member: Member, result: CoordinatorResult, response: JoinGroupResponse) -> None:
    """Answer a member's parked JoinGroup, if there is one."""
    if member.joining is not None:
        result.answer(member.joining, response)
        member.joining = None


def answer_sync(member: Member, result: CoordinatorResult, response: SyncGroupResponse) -> None:
    """Answer a member's parked SyncGroup, if there is one."""
    if member.syncing is not None:
        result.answer(member.syncing, response)
        member.syncing = None


def error(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """A refused JoinGroup."""
    return JoinGroupResponse(error_code=code, member_id=member_id)


def generation_for(
    group: Group, member: Member, *, with_members: bool = True, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The present generation as a member receives it; only the leader's has the other members."""
    leads = group.leader_id == member.id
    members = list(group.members.values()) if leads and with_members else []
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol or "",
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member.id,
        members=[
            JoinGroupResponseMember(
                member_id=each.id,
                group_instance_id=each.instance_id,
                metadata=each.metadata(group.protocol),
            )
            for each in members
        ],
    )
