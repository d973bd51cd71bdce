"""ConsumerGroupHeartbeat: one request in which members join, learn, give up, live and leave.

The steps of each (Kafka's `GroupMetadataManager.consumerGroupHeartbeat`): find the member and check
its epoch; update its subscription; bump the group epoch if that or the metadata has changed; update
the target assignment; reconcile this member one step towards it. All that changes is written.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.group.commits import consumer_group_write_error
from barnabas_broker.coordinator.group.consumer import fencing, migration, subscriptions
from barnabas_broker.coordinator.group.consumer import target as targets
from barnabas_broker.coordinator.group.consumer.expressions import Expressions
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.member import (
    ABSENT_EPOCH,
    JOINING_EPOCH,
    LEAVING_EPOCH,
    NOTHING,
    ConsumerMember,
    MemberState,
)
from barnabas_broker.coordinator.group.consumer.member_update import (
    MemberUpdate,
    check_expression,
    check_memory,
    check_room,
    replace_static_member,
)
from barnabas_broker.coordinator.group.consumer.reconciling import reconciled
from barnabas_broker.coordinator.group.consumer.records import (
    ConsumerRecord,
    Partitions,
    by_topic,
    epoch_record,
    partitions_of,
)
from barnabas_broker.coordinator.group.consumer.validation import check
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.members import Client
from barnabas_broker.coordinator.group.rebalancing import (
    CONSUMER_WAITS,
    Rebalancer,
    TimerKey,
    Wait,
)
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.embedded_consumers import AssignedTopic
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One request and its circumstances; `visible` says which topics its sender may describe."""

    request: ConsumerGroupHeartbeatRequest
    version: int
    client: Client
    waiter: Waiter
    visible: Callable[[str], bool]

    @property
    def owned(self) -> Partitions | None:
        """What the member says it reads, None where it does not say."""
        topics = self.request.topic_partitions
        if topics is None:
            return None
        return partitions_of(
            AssignedTopic(topic_id=each.topic_id, partitions=each.partitions) for each in topics
        )

    @property
    def is_full(self) -> bool:
        """Whether all fields are set, which asks for a full response."""
        request = self.request
        subscribes = (request.subscribed_topic_names, request.subscribed_topic_regex)
        return (
            request.rebalance_timeout_ms != -1
            and request.topic_partitions is not None
            and subscribes != (None, None)
        )


@dataclass(frozen=True, slots=True)
class ReportedState:
    """What a member reports that is not stored.

    `owned` is what it reads, None where it does not report it; `visible` says which topics it may
    describe: with None all expressions stay as they were resolved.
    """

    owned: Partitions | None
    visible: Callable[[str], bool] | None = None


class Heartbeats:
    """Decides on heartbeats; `image` is the metadata of now, replaced whenever it changes.

    `find` gives the group of a name, None where there is none.
    """

    def __init__(
        self,
        rebalancer: Rebalancer,
        new_id: Callable[[], str],
        find: Callable[[str], Group | None],
        expressions: Expressions | None = None,
    ) -> None:
        self._rebalancer = rebalancer
        self._new_id = new_id
        self._find = find
        self._expressions = Expressions() if expressions is None else expressions
        self._image = MetadataImage(cluster_id="")

    @property
    def image(self) -> MetadataImage:
        """The metadata of now."""
        return self._image

    @image.setter
    def image(self, image: MetadataImage) -> None:
        self._image = image
        self._expressions.on_topics(image.topics)

    def matching(self, group: ConsumerGroup | None, subscribed: str) -> Iterator[None]:
        """Have the expressions matched that a heartbeat of a group is about to need.

        `subscribed` is the one that it brings, if any. The heartbeat checks the ACLs.
        """
        if not subscribed and (group is None or group.seen_version == self.image.version):
            return
        needed = {subscribed} if subscribed else set()
        if group is not None:
            needed |= {member.regex for member in group.members.values() if member.regex}
        for expression in sorted(needed):
            try:
                yield from self._expressions.matching(expression)
            except KafkaError:
                continue

    def beat(self, known: ConsumerGroup | None, beat: Beat, result: CoordinatorResult) -> None:
        """Take a request to its answer; `known` is the group, if it is one of this protocol.

        Raises KafkaError for what is refused.
        """
        request = beat.request
        check(request, beat.version, self._rebalancer.limits.consumers.assignors)
        if known is None and request.member_epoch != JOINING_EPOCH:
            leaves = request.member_epoch in (LEAVING_EPOCH, ABSENT_EPOCH)
            whose = "Group" if leaves else "Consumer group"  # As Kafka has it.
            message = f"{whose} {request.group_id} not found."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
        group = known or ConsumerGroup(request.group_id)
        if request.member_epoch in (LEAVING_EPOCH, ABSENT_EPOCH):
            self._leave(group, beat, result)
            return
        update = self._member_update(group, beat)
        member = _updated(update.member, beat)
        if member != update.before:
            check_memory(update.before, member, self._rebalancer.has_room)
            check_expression(group, member)
        reported = ReportedState(beat.owned, beat.visible)
        after = self.advance(group, update, member, reported, result)
        sends_assignment = (
            request.member_epoch == JOINING_EPOCH
            or after.assigned != member.assigned
            or beat.is_full
        )
        self._answer(
            beat, result, after.id, after.epoch, after.assigned if sends_assignment else None
        )

    def advance(
        self,
        group: ConsumerGroup,
        update: MemberUpdate,
        member: ConsumerMember,
        reported: ReportedState,
        result: CoordinatorResult,
    ) -> ConsumerMember:
        """Write what has changed about a member, and take it one step towards its target."""
        result.records += update.records
        known = update.before
        if update.replaced is not None:
            # The member has been copied by now; its new words apply to the copy.
            known = update.member
            kept = group.target.get(update.replaced, NOTHING)
            result.records.append(known.subscription_record(group.id))
            result.records.append(targets.target_record(group.id, known.id, kept))
            result.records.append(known.current_record(group.id))
        if member != known:
            result.records.append(member.subscription_record(group.id))
        epoch, target = self._aim(group, update, member, reported, result)
        after = reconciled(
            member, epoch=epoch, target=target, owned=reported.owned, is_held=group.held
        )
        if after != member:
            result.records.append(after.current_record(group.id))
            self._time_revocation(group, after)
        self.touch(group.id, after)
        return after

    # --- the sending member

    def _member_update(self, group: ConsumerGroup, beat: Beat) -> MemberUpdate:
        request = beat.request
        joins = request.member_epoch == JOINING_EPOCH
        member_id = request.member_id or self._new_id()
        known = group.members.get(member_id)
        largest = self._rebalancer.limits.consumers.members_max
        check_room(group, member_id, request.instance_id, members_max=largest)
        if request.instance_id is None:
            if known is None and not joins:
                raise fencing.unknown(member_id, group.id)
        elif joins:
            at_place = group.static.get(request.instance_id)
            if at_place is not None and at_place != member_id:
                return replace_static_member(group, at_place, member_id)
        else:
            known = fencing.static_member(group, request.instance_id, member_id)
        if known is not None and not joins:
            fencing.check_epoch(known, request.member_epoch, beat.owned)
        return MemberUpdate.of(group, member_id)

    # --- the group's epoch and target

    def _aim(
        self,
        group: ConsumerGroup,
        update: MemberUpdate,
        member: ConsumerMember,
        reported: ReportedState,
        result: CoordinatorResult,
    ) -> tuple[int, Partitions]:
        """The epoch of the target and what it gives this member, both brought up to date."""
        before = update.before
        # As Kafka: a member that joins without a subscription leaves the others' epoch as it is.
        had = (frozenset(), "") if before is None else (before.topics, before.regex)
        wants_other = group.epoch == 0 or had != (member.topics, member.regex)
        version = self.image.version
        is_current = not wants_other and group.seen_version == version
        if is_current and group.epoch == group.target_epoch and update.replaced is None:
            return group.target_epoch, group.target.get(member.id, NOTHING)
        members = {id_: each for id_, each in group.members.items() if id_ != update.replaced}
        members[member.id] = member
        expressions: subscriptions.Expressions = group.expressions
        if reported.visible is not None:
            expressions = subscriptions.resolve(
                members.values(), self._expressions, reported.visible
            )
        wanted = group.wanted_by_all(members.values(), expressions)
        topics = subscriptions.seen(frozenset().union(*set(wanted.values())), self.image)
        changes: list[ConsumerRecord] = subscriptions.expression_records(
            group, expressions, version=version, now_ms=result.now_ms
        )
        if topics != group.topics:
            changes.append(subscriptions.topics_record(group.id, topics))
        epoch = group.epoch
        if wants_other or changes:
            epoch += 1
            changes.append(epoch_record(group.id, epoch))
        result.records += changes
        if not changes and reported.visible is not None:
            group.seen_version = version
        if epoch == group.target_epoch:
            return epoch, group.target.get(update.replaced or member.id, NOTHING)
        old = dict(group.target)
        if update.replaced is not None:
            old[member.id] = old.pop(update.replaced, NOTHING)
        offered = self._rebalancer.limits.consumers.assignors
        assignor = targets.elected_assignor(members.values(), offered)
        new = targets.target(wanted, topics, old, assignor=assignor)
        result.records += targets.target_records(group.id, old, new, epoch)
        return epoch, new[member.id]

    # --- leaving

    def _leave(self, group: ConsumerGroup, beat: Beat, result: CoordinatorResult) -> None:
        request = beat.request
        if request.instance_id is None:
            member = group.members.get(request.member_id)
            if member is None:
                raise fencing.unknown(request.member_id, group.id)
        else:
            member = fencing.static_member(group, request.instance_id, request.member_id)
        if request.member_epoch == ABSENT_EPOCH:
            # Its session goes on: when that is over, others get what it read.
            absent = replace(member, epoch=ABSENT_EPOCH, revoking=NOTHING)
            result.records.append(absent.current_record(group.id))
        else:
            self.remove(group, [member], result)
        self._answer(beat, result, member.id, request.member_epoch, None)

    def remove(
        self, group: ConsumerGroup, members: Collection[ConsumerMember], result: CoordinatorResult
    ) -> None:
        """Let members go; the others take over what they read with their next heartbeats.

        Where only members of the classic protocol are left, the group becomes one of theirs.
        """
        if not members:
            return
        gone = {member.id: None for member in members}
        if migration.may_downgrade(group, gone, self._rebalancer.limits):
            stay = {id_: each for id_, each in group.members.items() if id_ not in gone}
            self.downgrade(group, stay, result, generation=group.epoch, rebalances=True)
            return
        for member_id in gone:
            result.records += fencing.member_tombstones(group.id, member_id)
        left = [each for each in group.members.values() if each.id not in gone]
        topics = subscriptions.seen(group.subscribed(left), self.image)
        if topics != group.topics:
            result.records.append(subscriptions.topics_record(group.id, topics))
        result.records.append(epoch_record(group.id, group.epoch + 1))

        def settle(_then: CoordinatorResult) -> None:
            # Not before: a member that could not be written off is still expected, for nothing else
            # makes sure that what it read is read again.
            for member_id in gone:
                self._forget_waits(group.id, member_id)

        result.follow = settle

    def miss(self, group: ConsumerGroup, key: TimerKey, result: CoordinatorResult) -> None:
        """Remove a member after its session timeout; where that fails, try again later."""
        member = group.members.get(key.member_id)
        if member is None:
            return
        if key.wait is Wait.REVOCATION and member.epoch == ABSENT_EPOCH:
            return  # It has let go of everything, and has its session to come back.
        self.remove(group, [member], result)
        result.refuse = lambda _code, _instead: self.touch(group.id, member)

    def downgrade(
        self,
        group: ConsumerGroup,
        members: Mapping[str, ConsumerMember],
        result: CoordinatorResult,
        *,
        generation: int,
        rebalances: bool = False,
    ) -> None:
        """Make a group one of the classic protocol, with these members.

        They are named by the ids under which the group has their targets. Records carry one
        protocol of each; what else they know is remembered once the records are replayed.
        """
        topics = self.image.topic_ids
        down = migration.downgraded(
            group, members, topics=topics, generation=generation, now_ms=result.now_ms
        )
        result.records += down.records

        def settle(then: CoordinatorResult) -> None:
            classic = self._find(group.id)
            if classic is None:
                return
            for member in classic.members.values():
                classic.adapt(member, down.group.members[member.id].protocols)
                self._rebalancer.touch(classic, member)
            for member_id in {*group.members, *classic.members}:
                self._forget_waits(group.id, member_id)
            if rebalances:
                self._rebalancer.begin(classic, then)

        result.follow = settle

    def _forget_waits(self, group_id: str, member_id: str) -> None:
        for wait in CONSUMER_WAITS:
            self._rebalancer.timers.cancel(TimerKey(wait, group_id, member_id))

    # --- time

    def touch(self, group_id: str, member: ConsumerMember) -> None:
        """Restart a member's session; those of the classic protocol say how long it is."""
        session_ms = self._rebalancer.limits.consumers.session_ms
        if member.classic is not None:
            session_ms = member.classic.session_timeout_ms
        key = TimerKey(Wait.CONSUMER, group_id, member.id)
        self._rebalancer.timers.start(key, session_ms)

    def begin_sessions(self, group: ConsumerGroup) -> None:
        """Begin the sessions of members that were read back."""
        for member in group.members.values():
            self.touch(group.id, member)
            self._time_revocation(group, member)

    def _time_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        key = TimerKey(Wait.REVOCATION, group.id, member.id)
        # Members of the classic protocol are given time to join and to sync instead.
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            self._rebalancer.timers.start(key, member.rebalance_timeout_ms)
        else:
            self._rebalancer.timers.cancel(key)

    # --- answers

    def _answer(
        self,
        beat: Beat,
        result: CoordinatorResult,
        member_id: str,
        epoch: int,
        assigned: Partitions | None,
    ) -> None:
        assignment = None
        if assigned is not None:
            assignment = Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                    for each in by_topic(assigned)
                ]
            )
        interval_ms = self._rebalancer.limits.consumers.heartbeat_ms
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=epoch,
            heartbeat_interval_ms=interval_ms if epoch >= 0 else 0,
            assignment=assignment,
        )
        result.answer(beat.waiter, response)
        result.refuse = lambda code, instead: instead.answer(
            beat.waiter,
            ConsumerGroupHeartbeatResponse(error_code=consumer_group_write_error(code)),
        )


def _updated(member: ConsumerMember, beat: Beat) -> ConsumerMember:
    """The member with what the request says of it; what it leaves out stays as it was."""
    request = beat.request
    changed: dict[str, object] = {
        "client_id": beat.client.client_id,
        "client_host": beat.client.host,
        "classic": None,
    }
    given: Mapping[str, object] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "assignor": request.server_assignor,
        "regex": request.subscribed_topic_regex,
    }
    changed |= {name: value for name, value in given.items() if value is not None}
    if request.subscribed_topic_names is not None:
        changed["topics"] = frozenset(request.subscribed_topic_names)
    if request.rebalance_timeout_ms != -1:
        changed["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    return replace(member, **changed)  # type: ignore[arg-type]
