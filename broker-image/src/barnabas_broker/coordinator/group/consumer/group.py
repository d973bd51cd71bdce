"""A group of the consumer protocol as its records describe it; only `replay` changes it.

Invariants: each partition in `owners` is held by that one member, and what members hold is in it;
`static` maps each instance id to the one member that has it; no member's epoch is above
`target_epoch`, and that not above `epoch`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, cast
from uuid import UUID

from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import (
    ConsumerRecord,
    Kind,
    Partitions,
    partitions_of,
)
from barnabas_broker.coordinator.group.memory import PARTITION_BYTES, PROTOCOL_BYTES
from barnabas_broker.coordinator.memory import Account
from barnabas_broker.invariants import violated
from barnabas_kafka.protocol.embedded_consumers import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)


class SeenTopic(NamedTuple):
    """A topic as it was when the group last looked."""

    id: UUID
    partitions: int


class ConsumerGroup:
    """Members, epochs and assignments of one group."""

    __slots__ = (
        "account",
        "epoch",
        "expressions",
        "id",
        "members",
        "owners",
        "seen_version",
        "static",
        "target",
        "target_epoch",
        "topics",
    )

    def __init__(self, group_id: str, *, whole: Account | None = None) -> None:
        """`whole` is the account that the memory of this group is part of."""
        self.account = Account(whole)
        self.id = group_id
        self.epoch = 0
        self.target_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}
        self.target: dict[str, Partitions] = {}
        self.topics: dict[str, SeenTopic] = {}
        self.expressions: dict[str, frozenset[str]] = {}
        self.owners: dict[tuple[UUID, int], str] = {}
        # The metadata that topics and expressions were last compared with; soft, None: none yet.
        self.seen_version: int | None = None

    # --- what others ask

    @property
    def state_name(self) -> str:
        """The state as ConsumerGroupDescribe and ListGroups show it."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def subscribed(self, members: Collection[ConsumerMember] | None = None) -> frozenset[str]:
        """The names of all topics that members want, expressions as they were last resolved."""
        members = self.members.values() if members is None else members
        return frozenset(name for member in members for name in self.wanted_by(member))

    def wanted_by(
        self,
        member: ConsumerMember,
        expressions: Mapping[str, frozenset[str]] | None = None,
    ) -> frozenset[str]:
        """The names of the topics that one member wants."""
        if not member.regex:
            return member.topics
        resolved = self.expressions if expressions is None else expressions
        return member.topics | resolved.get(member.regex, frozenset())

    def wanted_by_all(
        self, members: Iterable[ConsumerMember], expressions: Mapping[str, frozenset[str]]
    ) -> dict[str, frozenset[str]]:
        """What each of the members wants; those that want the same share one set."""
        alike: dict[tuple[frozenset[str], str], frozenset[str]] = {}
        wanted = {}
        for member in members:
            key = (member.topics, member.regex)
            if key not in alike:
                alike[key] = self.wanted_by(member, expressions)
            wanted[member.id] = alike[key]
        return wanted

    def held(self, partitions: Partitions) -> Partitions:
        """Those that some member has."""
        return frozenset(each for each in partitions if each in self.owners)

    # --- replay

    def replay(self, record: ConsumerRecord) -> None:
        """Make true what a record of this group says; the group's own end is the shard's."""
        value = record.value
        if record.kind is Kind.GROUP:
            self.epoch = cast("ConsumerGroupMetadataValue", value).epoch if value else 0
        elif record.kind is Kind.TARGET_EPOCH:
            known = cast("ConsumerGroupTargetAssignmentMetadataValue | None", value)
            self.target_epoch = known.assignment_epoch if known else 0
        elif record.kind is Kind.TOPICS:
            self._see(cast("ConsumerGroupPartitionMetadataValue | None", value))
        elif record.kind is Kind.EXPRESSION:
            self._resolve(record.part, cast("ConsumerGroupRegularExpressionValue | None", value))
        elif record.kind is Kind.TARGET:
            self._aim(record.part, cast("ConsumerGroupTargetAssignmentMemberValue | None", value))
        elif record.kind is Kind.MEMBER:
            self._apply_metadata(
                record.part, cast("ConsumerGroupMemberMetadataValue | None", value)
            )
        else:
            current = cast("ConsumerGroupCurrentMemberAssignmentValue | None", value)
            self._read(record.part, current)

    def _see(self, value: ConsumerGroupPartitionMetadataValue | None) -> None:
        self.account.add(-_names_bytes(self.topics))
        topics = value.topics if value else []
        self.topics = {
            each.topic_name: SeenTopic(each.topic_id, each.num_partitions) for each in topics
        }
        self.account.add(_names_bytes(self.topics))

    def _resolve(self, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        self.account.add(-_names_bytes(self.expressions.pop(regex, ())))
        if value is not None:
            self.expressions[regex] = frozenset(value.topics)
            self.account.add(_names_bytes(value.topics))

    def _aim(self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None) -> None:
        self.account.add(-PARTITION_BYTES * len(self.target.pop(member_id, ())))
        if value is not None:
            target = self.target[member_id] = partitions_of(value.topic_partitions)
            assert self.account.held >= 0, violated("memory is given back once")
            self.account.add(PARTITION_BYTES * len(target))

    def _apply_metadata(
        self, member_id: str, value: ConsumerGroupMemberMetadataValue | None
    ) -> None:
        before = self.members.get(member_id)
        instance_id = None if before is None else before.instance_id
        if instance_id is not None and self.static.get(instance_id) == member_id:
            del self.static[instance_id]
        if value is None:
            if before is not None:
                self._hold(before, before.starting_over())
                del self.members[member_id]
                self.account.add(-before.memory_bytes)
            return
        member = (before or ConsumerMember(id=member_id)).with_metadata(value)
        self.members[member_id] = member
        assert member.id == member_id, violated("members are kept by their ids")
        self.account.add(member.memory_bytes - (0 if before is None else before.memory_bytes))
        if member.instance_id is not None:
            self.static[member.instance_id] = member_id
            assert member_id in self.members, violated("an instance is one member's")

    def _read(
        self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        before = self.members.get(member_id)
        if before is None:
            if value is None:
                return
            before = ConsumerMember(id=member_id)
            self.account.add(before.memory_bytes)
        after = before.starting_over() if value is None else before.reading(value)
        self._hold(before, after)
        self.members[member_id] = after

    def _hold(self, before: ConsumerMember, after: ConsumerMember) -> None:
        for partition in before.held - after.held:
            # While a compacted log is read, the next owner may have come first.
            if self.owners.get(partition) == before.id:
                del self.owners[partition]
        for partition in after.held:
            self.owners[partition] = after.id
        assert before.id == after.id, violated("a member takes the place of itself")
        self.account.add(PARTITION_BYTES * (len(after.held) - len(before.held)))


def _names_bytes(names: Collection[str]) -> int:
    return sum(map(len, names)) + PROTOCOL_BYTES * len(names)
