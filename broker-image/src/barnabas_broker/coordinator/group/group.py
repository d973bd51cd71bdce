"""A group as the coordinator remembers it: members, generation, leader, and committed offsets.

A group of the consumer protocol has its members in `consumers`, and here only its name and offsets:
for the classic protocol it is empty.

Invariants: `leader_id` is a member wherever there are members; `static` maps each instance id to
the one member that has it; `pending` ids were given out and belong to no member yet; `unsynced`
are members that have not sent SyncGroup in this generation.

Offsets and the existence of the group change only by `coordinator.replay`; membership is soft
state, of which a crash leaves the last generation that was written.
"""

from collections import Counter

from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.members import Client, Member, Protocols
from barnabas_broker.coordinator.group.memory import GROUP_BYTES, PENDING_BYTES
from barnabas_broker.coordinator.group.pending_offsets import PendingOffsets
from barnabas_broker.coordinator.group.records import CommittedOffset, GroupRecord
from barnabas_broker.coordinator.group.states import GroupEvent, GroupState, following
from barnabas_broker.coordinator.memory import Account
from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import NO_TIMESTAMP, TopicPartition
from barnabas_kafka.protocol.embedded import (
    GroupMetadataValue,
    MemberMetadata,
    subscribed_topics,
)

CONSUMERS = "consumer"
"""The protocol type of groups whose metadata a broker can read."""


class Group:
    """One group, of whichever protocol its members use."""

    __slots__ = (
        "_awaited",
        "_supporters",
        "account",
        "consumers",
        "generation",
        "id",
        "leader_id",
        "members",
        "metadata_bytes",
        "newcomer",
        "offsets",
        "pending",
        "pending_offsets",
        "protocol",
        "protocol_type",
        "remaining_delay_ms",
        "state",
        "state_since_ms",
        "static",
        "unsynced",
    )

    def __init__(self, group_id: str, *, now_ms: int, whole: Account | None = None) -> None:
        """`whole` is the account that the memory of this group is part of."""
        self.account = Account(whole, GROUP_BYTES + len(group_id))
        self.metadata_bytes = 0
        """Bytes of metadata of all members."""
        # A member that had not joined when that was last asked: while it has not, none of the
        # others has to be checked.
        self._awaited: Member | None = None
        # How many members support each assignment protocol.
        self._supporters: Counter[str] = Counter()
        self.id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        self.pending: set[str] = set()
        self.unsynced: set[str] = set()
        self.consumers: ConsumerGroup | None = None
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        self.pending_offsets = PendingOffsets()
        # The first rebalance of an empty group waits for more members: how much longer it may,
        # None in any other rebalance, and whether a member came since it was last prolonged.
        self.remaining_delay_ms: int | None = None
        self.newcomer = False

    # --- state

    def happens(self, event: GroupEvent, now_ms: int) -> None:
        """Enter the state that an event leads to."""
        self.state = following(self.state, event)
        self.state_since_ms = now_ms

    @property
    def is_empty(self) -> bool:
        """Whether it has no members of any protocol."""
        if self.consumers is not None:
            return not self.consumers.members
        return self.state is GroupState.EMPTY

    @property
    def state_name(self) -> str:
        """The state as clients see it."""
        return self.state.value if self.consumers is None else self.consumers.state_name

    @property
    def kind(self) -> str:
        """The type as ListGroups shows it (KIP-848)."""
        return "classic" if self.consumers is None else "consumer"

    @property
    def all_joined(self) -> bool:
        """Whether no member is missing from the rebalance."""
        if self.pending:
            return False
        awaited = self._awaited
        gone = awaited is None or self.members.get(awaited.id) is not awaited
        if awaited is None or gone or awaited.joining is not None:
            # From the last: members mostly come in the order in which they are asked.
            missing = (each for each in reversed(self.members.values()) if each.joining is None)
            self._awaited = next(missing, None)
        return self._awaited is None

    @property
    def joined(self) -> int:
        """How many members have joined the rebalance."""
        return sum(member.joining is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member may take to join."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # --- members

    def add(self, member: Member, protocol_type: str) -> None:
        """Take a member in; the first one settles the protocol type, and leads."""
        assert member.id not in self.members, violated("a member is added once")
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.id] = member
        self._supporters.update({name for name, _ in member.protocols})
        self.forget(member.id)
        self.weigh(member)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        if self.leader_id is None:
            self.leader_id = member.id
        assert self.leader_id in self.members, violated("the leader of a group is a member")
        assert member.id not in self.pending, violated("pending ids belong to no member")

    def remove(self, member_id: str) -> None:
        """Remove a member; another one leads where it did."""
        member = self.members.pop(member_id)
        self._unweigh(member)
        self._withdraw_support(member)
        if member.instance_id is not None:
            self.static.pop(member.instance_id, None)
        self.unsynced.discard(member_id)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        assert member_id not in self.unsynced, violated("a member that left is not waited for")
        assert not self.members or self.leader_id is not None, violated("a group has a leader")
        assert len(self.static) <= len(self.members), violated("an instance is one member's")

    def replace_static(self, old_id: str, new_id: str) -> Member:
        """Give the place of a static member to its next incarnation, which is returned."""
        member = self.members.pop(old_id)
        member.id = new_id
        self.members[new_id] = member
        self.weigh(member)
        self.static[member.instance_id or ""] = new_id
        if old_id in self.unsynced:
            self.unsynced.discard(old_id)
            self.unsynced.add(new_id)
        if self.leader_id == old_id:
            self.leader_id = new_id
        assert old_id not in self.members, violated("a static member has one member id")
        assert old_id not in self.unsynced, violated("a replaced member is not waited for")
        return member

    def expect(self, member_id: str) -> None:
        """Remember an id that was given out, until a member joins with it or its session ends."""
        if member_id not in self.pending:
            self.pending.add(member_id)
            assert member_id not in self.members, violated("pending ids belong to no member")
            self.account.add(PENDING_BYTES + len(member_id))

    def forget(self, member_id: str) -> None:
        """Drop an id that was given out and not used."""
        if member_id in self.pending:
            self.pending.discard(member_id)
            self.account.add(-PENDING_BYTES - len(member_id))

    def weigh(self, member: Member) -> None:
        """Count what a member takes; to be called when it has changed."""
        bytes_now, metadata_bytes = member.memory_bytes, member.metadata_bytes
        self.account.add(bytes_now - member.counted)
        self.metadata_bytes += metadata_bytes - member.metadata_counted
        member.counted, member.metadata_counted = bytes_now, metadata_bytes
        assert bytes_now > 0, violated("a member takes memory")

    def _unweigh(self, member: Member) -> None:
        assert member.counted >= 0, violated("memory is given back once")
        self.account.add(-member.counted)
        self.metadata_bytes -= member.metadata_counted
        member.counted = member.metadata_counted = 0
        assert self.metadata_bytes >= 0, violated("the metadata of members is counted once")

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode | None:
        """Why a client does not speak for a member: fenced, or unknown; None if it does."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        elif member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return None

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is a member that has joined; False where none has."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.joining is not None:
            return True
        for member in self.members.values():
            if member.joining is not None:
                self.leader_id = member.id
                return True
        assert not self.joined, violated("some member that has joined leads")
        return False

    # --- protocols

    def adapt(self, member: Member, protocols: Protocols) -> None:
        """Have a member support these protocols, and no others."""
        if protocols != member.protocols:
            self._withdraw_support(member)
            self._supporters.update({name for name, _ in protocols})
            member.protocols = protocols
            self.weigh(member)

    def _withdraw_support(self, member: Member) -> None:
        """Count a member's protocols without it; looks at no others, of which there may be many."""
        supporters = self._supporters
        for name in {name for name, _ in member.protocols}:
            supporters[name] -= 1
            if not supporters[name]:
                del supporters[name]

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols could be in this group."""
        if self.state is GroupState.EMPTY or not self.members:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        return len(self.members) in [self._supporters[name] for name, _ in protocols]

    def elect_protocol(self) -> str | None:
        """The protocol with the most votes among those that all members support.

        Of several with as many votes, the one that was voted for first.
        """
        candidates = self._common_protocols()
        if len(candidates) == 1 and self.members:
            return next(iter(candidates))
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=lambda name: votes[name]) if votes else None

    def _common_protocols(self) -> frozenset[str]:
        member_count = len(self.members)
        return frozenset(name for name, count in self._supporters.items() if count == member_count)

    # --- subscriptions

    def subscriptions(self) -> frozenset[str] | None:
        """The topics members subscribe to; None where their metadata is unreadable."""
        if self.consumers is not None:
            return self.consumers.subscribed()
        if self.protocol_type != CONSUMERS:
            return None
        if not self.members:
            return frozenset()
        topics: set[str] = set()
        for member in self.members.values():
            some = subscribed_topics(member.metadata(self.protocol))
            if some is None:
                return None
            topics |= some
        return frozenset(topics)

    # --- what is written

    def record(self, assignments: dict[str, bytes]) -> GroupRecord:
        """This generation, with what each member is assigned."""
        return GroupRecord(
            self.id,
            GroupMetadataValue(
                protocol_type=self.protocol_type or "",
                generation=self.generation,
                protocol=self.protocol,
                leader=self.leader_id,
                current_state_timestamp=self.state_since_ms,
                members=[
                    _written(member, self.protocol, assignments.get(member.id, b""))
                    for member in self.members.values()
                ],
            ),
        )

    def restore(self, written: GroupMetadataValue) -> None:
        """Be the generation that was written.

        For a group that has just come to it this says no more than that its assignment holds, and
        members keep what they wait for; when a log is read, it is all there is.
        """
        before = self.members
        # Before anything is changed: what cannot be read leaves the group as it was.
        read = {it.member_id: _read(it) for it in written.members if it.member_id not in before}
        for member in before.values():
            self._unweigh(member)
        self.protocol_type = written.protocol_type or None
        self.generation = written.generation
        self.protocol = written.protocol
        self.leader_id = written.leader
        self.members = {}
        for each in written.members:
            said = (written.protocol or "", each.subscription)
            member = before.get(each.member_id) or read[each.member_id]
            if said not in member.protocols:
                member.protocols = (said,)
            member.assignment = each.assignment
            self.members[member.id] = member
            self.weigh(member)
        self._supporters = Counter(
            name for member in self.members.values() for name in dict(member.protocols)
        )
        self.static = {
            member.instance_id: member.id
            for member in self.members.values()
            if member.instance_id is not None
        }
        if self.leader_id not in self.members:  # The record names no leader.
            self.leader_id = next(iter(self.members), None)
        written_so = GroupEvent.GENERATION_WRITTEN if self.members else GroupEvent.EMPTY_WRITTEN
        self.state = following(self.state, written_so)
        assert len(self.static) <= len(self.members), violated("an instance is one member's")
        if written.current_state_timestamp != NO_TIMESTAMP:
            self.state_since_ms = written.current_state_timestamp


def _read(written: MemberMetadata) -> Member:
    return Member(
        id=written.member_id,
        instance_id=written.group_instance_id,
        client=Client(written.client_id, written.client_host),
        # Before version 1 there was one timeout for both.
        rebalance_timeout_ms=written.rebalance_timeout or written.session_timeout,
        session_timeout_ms=written.session_timeout,
        protocols=(),
    )


def _written(member: Member, protocol: str | None, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client.client_id,
        client_host=member.client.host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=assignment,
    )
