"""What groups of the consumer protocol write to `__consumer_offsets`, as keys and values.

The value is the message of `embedded_consumers` that belongs to the kind, and is what replay reads;
None is the end of the thing that the key names.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final
from uuid import UUID

from barnabas_kafka.protocol.embedded import pack, unpack
from barnabas_kafka.protocol.embedded_consumers import (
    AssignedTopic,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupExpressionKey,
    GroupKey,
    GroupMemberKey,
)
from barnabas_kafka.protocol.schema import Message

VALUE_VERSION = 0

Partitions = frozenset[tuple[UUID, int]]
"""Partitions by topic id and number."""


class Kind(IntEnum):
    """What a record describes; the number is the version of its key."""

    GROUP = 3
    TOPICS = 4
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    EXPRESSION = 16


Key = GroupKey | GroupMemberKey | GroupExpressionKey

MESSAGES: Final[dict[int, tuple[type[Key], type[Message]]]] = {
    Kind.GROUP: (GroupKey, ConsumerGroupMetadataValue),
    Kind.TOPICS: (GroupKey, ConsumerGroupPartitionMetadataValue),
    Kind.MEMBER: (GroupMemberKey, ConsumerGroupMemberMetadataValue),
    Kind.TARGET_EPOCH: (GroupKey, ConsumerGroupTargetAssignmentMetadataValue),
    Kind.TARGET: (GroupMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    Kind.CURRENT: (GroupMemberKey, ConsumerGroupCurrentMemberAssignmentValue),
    Kind.EXPRESSION: (GroupExpressionKey, ConsumerGroupRegularExpressionValue),
}
"""The messages of key and value by the version of the key."""


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """One record; `part` is a member id or an expression, empty for what is the whole group's."""

    group_id: str
    kind: Kind
    part: str
    value: Message | None

    def encoded(self) -> tuple[bytes, bytes | None]:
        """The bytes of key and value."""
        key: Key
        key_class, _ = MESSAGES[self.kind]
        if key_class is GroupMemberKey:
            key = GroupMemberKey(group_id=self.group_id, member_id=self.part)
        elif key_class is GroupExpressionKey:
            key = GroupExpressionKey(group_id=self.group_id, regular_expression=self.part)
        else:
            key = GroupKey(group_id=self.group_id)
        value = None if self.value is None else pack(self.value, VALUE_VERSION)
        return pack(key, self.kind), value


def decode(version: int, key: bytes, value: bytes | None) -> ConsumerRecord | None:
    """The record with a key of this version; None where that is not known here.

    Raises DecodeError.
    """
    classes = MESSAGES.get(version)
    if classes is None:
        return None
    key_class, value_class = classes
    named = unpack(key_class, key)
    part = ""
    if isinstance(named, GroupMemberKey):
        part = named.member_id
    elif isinstance(named, GroupExpressionKey):
        part = named.regular_expression
    content = None if value is None else unpack(value_class, value)
    return ConsumerRecord(named.group_id, Kind(version), part, content)


def epoch_record(group_id: str, epoch: int) -> ConsumerRecord:
    """The group's epoch."""
    return ConsumerRecord(group_id, Kind.GROUP, "", ConsumerGroupMetadataValue(epoch=epoch))


def by_topic(partitions: Partitions) -> list[AssignedTopic]:
    """Partitions as records and responses have them, in one order whatever the set's."""
    topics: dict[UUID, AssignedTopic] = {}
    for topic_id, partition in sorted(partitions, key=lambda each: (each[0].int, each[1])):
        topic = topics.setdefault(topic_id, AssignedTopic(topic_id=topic_id))
        topic.partitions.append(partition)
    return list(topics.values())


def partitions_of(topics: Iterable[AssignedTopic]) -> Partitions:
    """The partitions that `by_topic` wrote."""
    return frozenset((topic.topic_id, each) for topic in topics for each in topic.partitions)
