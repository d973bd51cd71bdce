"""What is written to `__consumer_offsets`, as values and as the bytes of keys and values.

The versions are those that Kafka writes from 2.3 on: readable by any Kafka that knows leader
epochs and static members, and by its tools. An offset with an expiry of its own, which only
clients of OffsetCommit 2 to 4 can ask for, is of value version 1: no other can hold it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas_broker.coordinator.group.consumer import records as consumer_records
from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord
from barnabas_broker.invariants import violated
from barnabas_kafka.ids import NO_EPOCH, NO_TIMESTAMP, TopicPartition
from barnabas_kafka.protocol.embedded import (
    GROUP_METADATA_KEY,
    OFFSET_COMMIT_KEYS,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    pack,
    unpack,
    version_of,
)
from barnabas_kafka.protocol.schema import Message

OFFSET_KEY_VERSION = 1
OFFSET_VALUE_VERSION = 3
EXPIRING_OFFSET_VALUE_VERSION = 1
GROUP_VALUE_VERSION = 3


MESSAGES: Final[Mapping[int, tuple[type[Message], type[Message]]]] = {
    **dict.fromkeys(OFFSET_COMMIT_KEYS, (OffsetCommitKey, OffsetCommitValue)),
    GROUP_METADATA_KEY: (GroupMetadataKey, GroupMetadataValue),
    **consumer_records.MESSAGES,
}
"""The messages of key and value by the version of the key, which is the kind of the record."""


class CommittedOffset(NamedTuple):
    """How far a group has read a partition; a tuple, as each commit makes one.

    `expire_timestamp` is NO_TIMESTAMP where the broker's retention applies; `commit_timestamp` is
    when it was committed, in milliseconds since the epoch.
    """

    offset: int
    commit_timestamp: int
    metadata: str = ""
    leader_epoch: int = NO_EPOCH
    expire_timestamp: int = NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """An offset that is committed, or with None deleted."""

    group_id: str
    partition: TopicPartition
    committed: CommittedOffset | None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A generation of a group, or with None the group's end."""

    group_id: str
    metadata: GroupMetadataValue | None


@dataclass(frozen=True, slots=True)
class PendingOffset:
    """An offset that a producer wrote in its open transaction."""

    producer_id: int
    offset: OffsetRecord


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """A producer's transaction is over: the offsets in it count now, or never."""

    producer_id: int
    committed: bool


Plain = OffsetRecord | GroupRecord | ConsumerRecord
"""What is a record in the log by itself."""

Record = Plain | PendingOffset | TransactionEnd


class GroupKind:
    """How records of `__consumer_offsets` look in the log."""

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        """The key and the value of a record; an end has none, it is a marker."""
        if isinstance(record, PendingOffset):
            return encode(record.offset)
        assert not isinstance(record, TransactionEnd), violated("an end is a marker, not a record")
        return encode(record)

    def decode(self, key: bytes, value: bytes | None) -> Record | None:
        """The record; None for kinds that are not known here; raises DecodeError."""
        return decode(key, value)

    def in_transaction(self, producer_id: int, record: Record) -> Record | None:
        """Only offsets are ever written in transactions."""
        return PendingOffset(producer_id, record) if isinstance(record, OffsetRecord) else None

    def ended(self, producer_id: int, *, committed: bool) -> Record | None:
        """The end of a producer's transaction."""
        return TransactionEnd(producer_id, committed)


KIND = GroupKind()


def encode(record: Plain) -> tuple[bytes, bytes | None]:
    """The key and the value of a record."""
    if isinstance(record, ConsumerRecord):
        return record.encoded()
    if isinstance(record, GroupRecord):
        key = pack(GroupMetadataKey(group=record.group_id), GROUP_METADATA_KEY)
        if record.metadata is None:
            return key, None
        return key, pack(record.metadata, GROUP_VALUE_VERSION)
    topic, partition = record.partition
    named = OffsetCommitKey(group=record.group_id, topic=topic, partition=partition)
    key = pack(named, OFFSET_KEY_VERSION)
    committed = record.committed
    if committed is None:
        return key, None
    expires = committed.expire_timestamp != NO_TIMESTAMP
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp,
        expire_timestamp=committed.expire_timestamp,
    )
    return key, pack(value, EXPIRING_OFFSET_VALUE_VERSION if expires else OFFSET_VALUE_VERSION)


def decode(key: bytes, value: bytes | None) -> Plain | None:
    """The record with this key and value; None for kinds that are not known here.

    Raises DecodeError for bytes that are none of this topic's.
    """
    kind = version_of(key)
    if kind in OFFSET_COMMIT_KEYS:
        named = unpack(OffsetCommitKey, key)
        partition = TopicPartition(named.topic, named.partition)
        return OffsetRecord(named.group, partition, None if value is None else _committed(value))
    if kind == GROUP_METADATA_KEY:
        group_id = unpack(GroupMetadataKey, key).group
        metadata = None if value is None else unpack(GroupMetadataValue, value)
        return GroupRecord(group_id, metadata)
    return consumer_records.decode(kind, key, value)


def _committed(data: bytes) -> CommittedOffset:
    value = unpack(OffsetCommitValue, data)
    return CommittedOffset(
        offset=value.offset,
        commit_timestamp=value.commit_timestamp,
        metadata=value.metadata,
        leader_epoch=value.leader_epoch,
        expire_timestamp=value.expire_timestamp,
    )
