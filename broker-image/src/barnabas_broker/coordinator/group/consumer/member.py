"""A member of a group of the consumer protocol: an immutable value, replaced by each change."""

from dataclasses import dataclass, replace
from enum import IntEnum

from barnabas_broker.coordinator.group.consumer.records import (
    ConsumerRecord,
    Kind,
    Partitions,
    by_topic,
    partitions_of,
)
from barnabas_broker.coordinator.group.members import Client, Protocols, member_bytes
from barnabas_broker.coordinator.group.memory import PROTOCOL_BYTES
from barnabas_kafka.protocol.embedded_consumers import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

JOINING_EPOCH = 0
"""The epoch of a member that joins, or joins again after it was fenced."""
LEAVING_EPOCH = -1
"""What a member sends that leaves for good."""
ABSENT_EPOCH = -2
"""What a static member sends, and keeps, that leaves to come back."""


class MemberState(IntEnum):
    """How far a member has come; the numbers are those in its record."""

    STABLE = 0
    """It reads its target as of its epoch."""
    UNREVOKED_PARTITIONS = 1
    """It must give something up first, and keeps its epoch until it has."""
    UNRELEASED_PARTITIONS = 2
    """It has its new epoch, but others have not revoked all of its target."""


NOTHING: Partitions = frozenset()


@dataclass(frozen=True, slots=True)
class ClassicTerms:
    """What a member of the classic protocol sent with JoinGroup; the first protocol is used."""

    session_timeout_ms: int
    protocols: Protocols

    @property
    def protocol(self) -> str:
        """The name of the protocol that it goes by."""
        return self.protocols[0][0]

    @property
    def metadata(self) -> bytes:
        """Its metadata for that."""
        return self.protocols[0][1]

    def written(self) -> ClassicMemberMetadata:
        """The terms as a record has them."""
        return ClassicMemberMetadata(
            session_timeout_ms=self.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=data) for name, data in self.protocols
            ],
        )

    @classmethod
    def read(cls, written: ClassicMemberMetadata) -> "ClassicTerms":
        """The terms in a record."""
        protocols = tuple((each.name, each.metadata) for each in written.supported_protocols)
        return cls(written.session_timeout_ms, protocols)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """One member. `regex` is empty where it subscribes to names alone.

    `classic` is None for those that use the consumer protocol.
    """

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    epoch: int = JOINING_EPOCH
    previous_epoch: int = JOINING_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NOTHING
    revoking: Partitions = NOTHING
    classic: ClassicTerms | None = None

    @property
    def held(self) -> Partitions:
        """What no other member may read: what it reads and what it has not given up yet."""
        return self.assigned | self.revoking

    @property
    def memory_bytes(self) -> int:
        """How much memory it takes, but for what it reads."""
        protocols = () if self.classic is None else self.classic.protocols
        client = Client(self.client_id, self.client_host)
        size = member_bytes(self.id, client, self.instance_id, protocols)
        texts = len(self.rack_id or "") + len(self.regex) + sum(map(len, self.topics))
        return size + texts + PROTOCOL_BYTES * len(self.topics)

    def reconciled_to(self, epoch: int) -> bool:
        """Whether it has nothing left to do for the target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    # --- what is written

    def subscription_record(self, group_id: str) -> ConsumerRecord:
        """Its subscription and client, as it sent them."""
        value = ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topics),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=None if self.classic is None else self.classic.written(),
        )
        return ConsumerRecord(group_id, Kind.MEMBER, self.id, value)

    def current_record(self, group_id: str) -> ConsumerRecord:
        """What it reads."""
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=by_topic(self.assigned),
            partitions_pending_revocation=by_topic(self.revoking),
        )
        return ConsumerRecord(group_id, Kind.CURRENT, self.id, value)

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        """The member as `subscription_record` describes it."""
        classic = value.classic_member_metadata
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=None if classic is None else ClassicTerms.read(classic),
        )

    def reading(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerMember":
        """The member as `current_record` describes it."""
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=partitions_of(value.assigned_partitions),
            revoking=partitions_of(value.partitions_pending_revocation),
        )

    def starting_over(self) -> "ConsumerMember":
        """The member without anything to read, as it is when its current record has ended."""
        return replace(
            self,
            epoch=JOINING_EPOCH,
            previous_epoch=JOINING_EPOCH,
            state=MemberState.STABLE,
            assigned=NOTHING,
            revoking=NOTHING,
        )
