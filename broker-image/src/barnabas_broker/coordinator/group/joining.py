"""JoinGroup: admission to a group, member ids, and whether the group rebalances.

    state                 new member   known, same metadata        known, other metadata
    EMPTY                 rebalance    UNKNOWN_MEMBER_ID           UNKNOWN_MEMBER_ID
    PREPARING_REBALANCE   joins it     joins it                    joins it
    COMPLETING_REBALANCE  rebalance    the generation once more    rebalance
    STABLE                rebalance    leader: rebalance;          rebalance
                                       follower: the generation

A static member that comes back with a new member id takes its old place: in STABLE without a
rebalance, as long as the protocol stays the same; in COMPLETING_REBALANCE with one, because the
leader has the old id.
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas_broker.coordinator.group.commits import group_write_error
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.limits import NEW_MEMBER_TIMEOUT_MS
from barnabas_broker.coordinator.group.members import (
    Client,
    Member,
    Protocols,
    member_bytes,
    metadata_size,
)
from barnabas_broker.coordinator.group.memory import PENDING_BYTES
from barnabas_broker.coordinator.group.rebalancing import (
    Rebalancer,
    TimerKey,
    Wait,
    answer_join,
    answer_sync,
    error,
    generation_for,
)
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.group_values import GroupJoin
from barnabas_kafka.protocol.messages.sync_group import SyncGroupResponse

MEMBER_ID_FIRST_SINCE = 4
"""From this version on a new member joins in two steps (KIP-394)."""
SKIP_ASSIGNMENT_SINCE = 9
"""From this version on a returning leader can be asked not to assign (KIP-814)."""


class Join(NamedTuple):
    """One JoinGroup request and its circumstances."""

    request: GroupJoin
    version: int
    client: Client
    waiter: Waiter

    @property
    def protocols(self) -> Protocols:
        """As members keep them."""
        return self.request.protocols

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has one timeout for both."""
        if self.version == 0:
            return self.request.session_timeout_ms
        return self.request.rebalance_timeout_ms

    @property
    def metadata_size(self) -> int:
        """How much of memory the member would take."""
        return metadata_size(self.client, self.request.group_instance_id, self.protocols)


class Joining:
    """Decides on JoinGroup requests; `new_id` gives an unused suffix."""

    def __init__(self, rebalancer: Rebalancer, new_id: Callable[[], str]) -> None:
        self._rebalancer = rebalancer
        self._new_id = new_id

    def join(self, group: Group, join: Join, result: CoordinatorResult) -> None:
        """Take a request to its answer, or park it with its member."""
        request = join.request
        if not (self._has_room(group, request.member_id) and self._has_memory(group, join)):
            if request.member_id in group.members:
                self._rebalancer.remove(group, group.members[request.member_id], result)
            result.answer(join.waiter, error(ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not self._rebalancer.has_room(self._growth(group, join)):
            # Nothing that this client could do otherwise: it tries again until others have left.
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            result.answer(join.waiter, error(code, request.member_id))
        elif not group.supports(request.protocol_type, join.protocols):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            result.answer(join.waiter, error(code, request.member_id))
        elif not request.member_id:
            self._join_new(group, join, result)
        elif request.member_id in group.pending and request.group_instance_id is None:
            self._rebalancer.timers.cancel(TimerKey(Wait.PENDING, group.id, request.member_id))
            self._add(group, request.member_id, join, result)
        else:
            self._join_again(group, join, result)
        self._rebalancer.complete_if_all_joined(group, result)

    def _has_room(self, group: Group, member_id: str) -> bool:
        """Whether one more is welcome; in a rebalance the last to come are the ones too many."""
        largest = self._rebalancer.limits.members_max
        if group.state is GroupState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            joined = member is not None and member.joining is not None
            # Static members stay though they have not come, in each rebalance others: Apache lets
            # that grow without end.
            stay = member is not None or len(group.members) < 2 * largest
            return joined or len(group.members) < largest or (group.joined < largest and stay)
        if group.state is GroupState.EMPTY:
            return True
        return member_id in group.members or len(group.members) < largest

    def _has_memory(self, group: Group, join: Join) -> bool:
        """Whether the metadata of all members stays within its bound.

        A client that sends no more than its share is not counted: as there are only so many, all
        such clients take no more than the bound once again, and joining costs less in large groups.
        """
        limits = self._rebalancer.limits
        if join.metadata_size <= limits.members_bytes_max // limits.members_max:
            return True
        known = group.members.get(join.request.member_id)
        size = group.metadata_bytes - (0 if known is None else known.metadata_counted)
        promised = sum(map(len, group.pending))
        return size + promised + join.metadata_size <= limits.members_bytes_max

    def _growth(self, group: Group, join: Join) -> int:
        """How much more memory the group takes with this request."""
        request = join.request
        member_id, instance_id = request.member_id, request.group_instance_id
        if not member_id and instance_id is None and join.version >= MEMBER_ID_FIRST_SINCE:
            return PENDING_BYTES + len(join.client.client_id)
        known = group.members.get(member_id or group.static.get(instance_id or "", ""))
        more = member_bytes(member_id, join.client, instance_id, join.protocols)
        return more - (0 if known is None else known.counted)

    # --- new members

    def _join_new(self, group: Group, join: Join, result: CoordinatorResult) -> None:
        instance_id = join.request.group_instance_id
        if instance_id is not None:
            member_id = f"{instance_id}-{self._new_id()}"
            if instance_id in group.static:
                self._return(group, member_id, join, result)
            else:
                self._add(group, member_id, join, result)
            return
        member_id = f"{join.client.client_id}-{self._new_id()}"
        if join.version < MEMBER_ID_FIRST_SINCE:
            self._add(group, member_id, join, result)
            return
        if len(group.pending) >= self._rebalancer.limits.members_max:
            result.answer(join.waiter, error(ErrorCode.GROUP_MAX_SIZE_REACHED))
            return
        assert member_id not in group.members, violated("an id is given out once")
        group.expect(member_id)
        pending = TimerKey(Wait.PENDING, group.id, member_id)
        self._rebalancer.timers.start(pending, join.request.session_timeout_ms)
        result.answer(join.waiter, error(ErrorCode.MEMBER_ID_REQUIRED, member_id))

    def _add(self, group: Group, member_id: str, join: Join, result: CoordinatorResult) -> None:
        if group.state is GroupState.PREPARING_REBALANCE and group.generation == 0:
            group.newcomer = True
        member = Member(
            id=member_id,
            instance_id=join.request.group_instance_id,
            client=join.client,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=join.request.session_timeout_ms,
            protocols=join.protocols,
            is_new=True,
            joining=join.waiter,
        )
        group.add(member, join.request.protocol_type)
        assert group.members[member_id] is member, violated("a joining member is in the group")
        assert group.state is not GroupState.DEAD, violated("no member joins a group that is dead")
        key = TimerKey(Wait.SESSION, group.id, member_id)
        self._rebalancer.timers.start(key, NEW_MEMBER_TIMEOUT_MS)
        self._rebalancer.begin(group, result)

    # --- members we know

    def _join_again(self, group: Group, join: Join, result: CoordinatorResult) -> None:
        request = join.request
        code = group.check_member(request.member_id, request.group_instance_id)
        if code is not None or group.state is GroupState.EMPTY:
            code = code or ErrorCode.UNKNOWN_MEMBER_ID
            result.answer(join.waiter, error(code, request.member_id))
            return
        member = group.members[request.member_id]
        assert member.id == request.member_id, violated("members are kept by their ids")
        unchanged = member.protocols == join.protocols
        leads = group.leader_id == member.id
        if unchanged and (
            group.state is GroupState.COMPLETING_REBALANCE
            or (group.state is GroupState.STABLE and not leads)
        ):
            # It may have missed the generation, or retries.
            result.answer(join.waiter, generation_for(group, member))
            return
        _update(group, member, join)
        self._rebalancer.begin(group, result)

    # --- static members that come back

    def _return(self, group: Group, member_id: str, join: Join, result: CoordinatorResult) -> None:
        old_leader = group.leader_id
        old_id = group.static[join.request.group_instance_id or ""]
        member = group.members[old_id]
        answer_join(member, result, error(ErrorCode.FENCED_INSTANCE_ID, old_id))
        answer_sync(member, result, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        self._rebalancer.timers.cancel(TimerKey(Wait.SESSION, group.id, old_id))
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        group.replace_static(old_id, member_id)
        assert group.static[member.instance_id or ""] == member_id, violated(
            "an instance is one member's"
        )
        _update(group, member, join)
        self._rebalancer.touch(group, member)
        if group.state is not GroupState.STABLE or group.elect_protocol() != group.protocol:
            self._rebalancer.begin(group, result)
            return
        result.records.append(
            group.record({each.id: each.assignment for each in group.members.values()})
        )

        def refuse(code: ErrorCode, instead: CoordinatorResult) -> None:
            assert member_id in group.members, violated("what was not written is undone at once")
            group.replace_static(member_id, old_id)
            protocols, member.rebalance_timeout_ms, member.session_timeout_ms = before
            group.adapt(member, protocols)
            self._rebalancer.timers.cancel(TimerKey(Wait.SESSION, group.id, member_id))
            self._rebalancer.touch(group, member)
            instead.answer(join.waiter, error(group_write_error(code)))

        result.refuse = refuse
        member.joining = None
        leads = group.leader_id == member_id
        if join.version >= SKIP_ASSIGNMENT_SINCE:
            result.answer(join.waiter, generation_for(group, member, skip_assignment=leads))
            return
        # As the leader it would assign, and no SyncGroup would carry that: so it is sent the
        # former leader, which is no member now.
        response = generation_for(group, member, with_members=False)
        response.leader = old_leader or ""
        result.answer(join.waiter, response)


def _update(group: Group, member: Member, join: Join) -> None:
    group.adapt(member, join.protocols)
    member.rebalance_timeout_ms = join.rebalance_timeout_ms
    member.session_timeout_ms = join.request.session_timeout_ms
    member.client = join.client
    group.weigh(member)
    member.joining = join.waiter
