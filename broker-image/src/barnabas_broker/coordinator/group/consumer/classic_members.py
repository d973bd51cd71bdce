"""Members of the classic protocol in a group of the consumer protocol (KIP-848).

The coordinator is the leader that they follow: JoinGroup is answered at once, by one step towards
the member's target, without the others' subscriptions; SyncGroup hands out what the member reads
now; a heartbeat is answered REBALANCE_IN_PROGRESS when there is another step to take. The
generation of each member is its epoch.

What the member says it owns in its subscription is what it reads, so that one with an eager
assignor, which owns nothing when it joins, has given up all.
"""

from collections.abc import Callable
from dataclasses import replace

from barnabas_broker.coordinator.group.commits import group_write_error
from barnabas_broker.coordinator.group.consumer import fencing, migration
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.heartbeat import Heartbeats, ReportedState
from barnabas_broker.coordinator.group.consumer.member import (
    NOTHING,
    ClassicTerms,
    ConsumerMember,
    MemberState,
)
from barnabas_broker.coordinator.group.consumer.member_update import (
    MemberUpdate,
    check_memory,
    check_room,
    replace_static_member,
)
from barnabas_broker.coordinator.group.group import CONSUMERS
from barnabas_broker.coordinator.group.joining import MEMBER_ID_FIRST_SINCE, Join
from barnabas_broker.coordinator.group.members import Client, metadata_size
from barnabas_broker.coordinator.group.rebalancing import Rebalancer, TimerKey, Wait, error
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.consumer_protocol import Subscription
from barnabas_kafka.protocol.group_values import GroupHeartbeat, GroupSync
from barnabas_kafka.protocol.messages.join_group import JoinGroupResponse
from barnabas_kafka.protocol.messages.leave_group import MemberIdentity
from barnabas_kafka.protocol.messages.sync_group import SyncGroupResponse


class ClassicMembers:
    """Decides on the requests of such members; `new_id` gives an unused member id."""

    def __init__(
        self, rebalancer: Rebalancer, heartbeats: Heartbeats, new_id: Callable[[], str]
    ) -> None:
        self._rebalancer = rebalancer
        self._heartbeats = heartbeats
        self._new_id = new_id

    # --- JoinGroup

    def join(self, group: ConsumerGroup, join: Join, result: CoordinatorResult) -> None:
        """Take a member in, or one step further; raises KafkaError for what is refused."""
        request = join.request
        is_new = not request.member_id
        member_id = request.member_id or self._new_id()
        self._check(group, member_id, join)
        if is_new and join.version >= MEMBER_ID_FIRST_SINCE and request.group_instance_id is None:
            result.answer(join.waiter, error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        update = self._member_update(group, member_id, join)
        subscription = migration.subscription_of(join.protocols[0][1])
        member = _updated(update.member, join, subscription)
        check_memory(update.before, member, self._rebalancer.has_room)
        owned = migration.owned(subscription.owned_partitions, self._heartbeats.image)
        after = self._heartbeats.advance(group, update, member, ReportedState(owned), result)
        self._rebalancer.timers.cancel(_key(Wait.CLASSIC_JOIN, group, after))
        response = JoinGroupResponse(
            generation_id=after.epoch,
            protocol_type=CONSUMERS,
            protocol_name=join.protocols[0][0],
            member_id=after.id,
        )
        result.answer(join.waiter, response)
        result.refuse = lambda code, instead: instead.answer(
            join.waiter, error(group_write_error(code), request.member_id)
        )
        replaced = update.replaced
        limits = self._rebalancer.limits
        if replaced is not None and migration.may_downgrade(group, {replaced}, limits, coming=1):
            members = {**group.members, replaced: after}
            self._heartbeats.downgrade(group, members, result, generation=after.epoch)
            return
        sync = _key(Wait.CLASSIC_SYNC, group, after)
        self._rebalancer.timers.start(sync, after.rebalance_timeout_ms)

    def _check(self, group: ConsumerGroup, member_id: str, join: Join) -> None:
        limits = self._rebalancer.limits
        largest = limits.consumers.members_max
        check_room(group, member_id, join.request.group_instance_id, members_max=largest)
        others = [
            (member, member.classic)
            for member in group.members.values()
            if member.classic is not None
        ]
        size = sum(
            metadata_size(Client(member.client_id, ""), member.instance_id, terms.protocols)
            for member, terms in others
            if member.id != member_id
        )
        if size + join.metadata_size > limits.members_bytes_max:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        names = [{name for name, _ in terms.protocols} for _, terms in others]
        common = (name for name, _ in join.protocols if all(name in each for each in names))
        if join.request.protocol_type != CONSUMERS or next(common, None) is None:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _member_update(self, group: ConsumerGroup, member_id: str, join: Join) -> MemberUpdate:
        instance_id = join.request.group_instance_id
        if instance_id is None:
            return MemberUpdate.of(group, member_id)
        if join.request.member_id:
            fencing.static_member(group, instance_id, member_id)
        elif instance_id in group.static:
            return replace_static_member(group, group.static[instance_id], member_id, classic=True)
        return MemberUpdate.of(group, member_id)

    # --- SyncGroup, Heartbeat, LeaveGroup

    def sync(
        self,
        group: ConsumerGroup,
        request: GroupSync,
        waiter: Waiter,
        result: CoordinatorResult,
    ) -> None:
        """Hand out what the member reads; raises KafkaError for what is refused."""
        member, terms = self._member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        wanted = (request.protocol_type, request.protocol_name)
        if wanted[0] not in (None, CONSUMERS) or wanted[1] not in (None, terms.protocol):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._rebalancer.timers.cancel(_key(Wait.CLASSIC_SYNC, group, member))
        self._heartbeats.touch(group.id, member)
        assignment = migration.assignment_for(
            member.assigned, metadata=terms.metadata, topics=self._heartbeats.image.topic_ids
        )
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment,
        )
        result.answer(waiter, response)

    def heartbeat(self, group: ConsumerGroup, request: GroupHeartbeat) -> ErrorCode:
        """Prolong a session; raises KafkaError for what is refused.

        REBALANCE_IN_PROGRESS where the member should join: the group has gone on, or it has to let
        go of something, or what it waits for is free.
        """
        member, _ = self._member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        self._heartbeats.touch(group.id, member)
        waited_for = group.target.get(member.id, NOTHING) - member.assigned
        if (
            member.epoch < group.epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.held(waited_for))
        ):
            self._expect_join(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leaver(self, group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
        """The member that LeaveGroup names; raises KafkaError where there is none.

        It may use either protocol: an administrator has no other way to remove members.
        """
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if instance_id is not None:
            return fencing.static_member(
                group, instance_id, member_id or group.static.get(instance_id, "")
            )
        if member_id not in group.members:
            raise fencing.unknown(member_id, group.id)
        return group.members[member_id]

    def _member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None
    ) -> tuple[ConsumerMember, ClassicTerms]:
        if instance_id is not None:
            fencing.static_member(group, instance_id, member_id)
        member = group.members.get(member_id)
        if member is None or member.classic is None:
            raise fencing.unknown(member_id, group.id)
        return member, member.classic

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        timers, key = self._rebalancer.timers, _key(Wait.CLASSIC_JOIN, group, member)
        if key not in timers:
            timers.start(key, member.rebalance_timeout_ms)


def _updated(member: ConsumerMember, join: Join, subscription: Subscription) -> ConsumerMember:
    """The member with what the request says of it; what it leaves out stays as it was."""
    request = join.request
    return replace(
        member,
        instance_id=member.instance_id or request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=join.client.client_id,
        client_host=join.client.host,
        topics=frozenset(subscription.topics),
        # One that has been of the consumer protocol may have subscribed to an expression.
        regex="",
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        classic=ClassicTerms(request.session_timeout_ms, join.protocols),
    )


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)


def _key(wait: Wait, group: ConsumerGroup, member: ConsumerMember) -> TimerKey:
    return TimerKey(wait, group.id, member.id)
