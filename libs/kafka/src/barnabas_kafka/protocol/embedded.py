"""Messages that live inside other messages or inside records, and never travel by themselves.

Each is preceded by its version, an int16 that `pack` writes and `unpack` reads.

Records of `__consumer_offsets` (a key's version also says what kind of record it is):

    key version   record            value
    0, 1          OffsetCommitKey   OffsetCommitValue, null for a deleted offset
    2             GroupMetadataKey  GroupMetadataValue, null for a deleted group
    3 and above   the next-generation protocol's (KIP-848)

Records of `__transaction_state` have a TransactionLogKey of version 0 and a TransactionLogValue,
null for a transactional id that was forgotten.

`ConsumerProtocolSubscription` is what members of type "consumer" send as their metadata. Clients
define it; a broker only reads the topics, which are in the same place in every version.
"""

from struct import Struct as Layout
from struct import error as StructError  # noqa: N812 - it is an exception and reads like one
from typing import Final, TypeVar

from barnabas_kafka.primitives import Buffer
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.schema import (
    INT32,
    STRING,
    Message,
    Struct,
    array,
    binary,
    int8,
    int16,
    int32,
    int64,
    string,
)

M = TypeVar("M", bound=Message)

OFFSET_COMMIT_KEYS: Final = (0, 1)
GROUP_METADATA_KEY: Final = 2
TRANSACTION_LOG_KEY: Final = 0

_VERSION: Final = Layout(">h")


class OffsetCommitKey(Message, versions="0-1"):
    """Whose offset it is."""

    group: str = string("0+")
    topic: str = string("0+")
    partition: int = int32("0+")


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    """A committed offset. Version 1 is written where the client asked for a retention."""

    offset: int = int64("0+")
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string("0+")
    commit_timestamp: int = int64("0+")
    expire_timestamp: int = int64("1", default=-1, ignorable=True)


class GroupMetadataKey(Message, versions="2"):
    """Which group it is."""

    group: str = string("2")


class MemberMetadata(Struct):
    """Element of `members` in GroupMetadataValue."""

    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout: int = int32("1+", ignorable=True)
    session_timeout: int = int32("0+")
    subscription: bytes = binary("0+")
    assignment: bytes = binary("0+")


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    """A generation of a group: its protocol, leader, members and what they were assigned."""

    protocol_type: str = string("0+")
    generation: int = int32("0+")
    protocol: str | None = string("0+", nullable="0+")
    leader: str | None = string("0+", nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata, "0+")


class TransactionLogKey(Message, versions="0"):
    """Which transactional id it is."""

    transactional_id: str = string("0")


class TransactionLogPartitions(Struct):
    """Element of `transaction_partitions` in TransactionLogValue."""

    topic: str = string("0+")
    partition_ids: list[int] = array(INT32, "0+")


class TransactionLogValue(Message, versions="0-1", flexible="1+"):
    """A transactional id, its producer and its latest transaction.

    Versions:
       1: flexible; value adds previous_producer_id, next_producer_id, client_transaction_version
          (KIP-890).
    """

    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    transaction_timeout_ms: int = int32("0+")
    transaction_status: int = int8("0+")
    transaction_partitions: list[TransactionLogPartitions] | None = array(
        TransactionLogPartitions, "0+", nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = int64("0+")
    transaction_start_timestamp_ms: int = int64("0+")
    previous_producer_id: int = int64("1+", default=-1, ignorable=True, tag=0)
    next_producer_id: int = int64("1+", default=-1, ignorable=True, tag=1)
    client_transaction_version: int = int16("1+", ignorable=True, tag=2)


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """The part of a consumer's metadata that all versions begin with."""

    topics: list[str] = array(STRING, "0+")


def pack(message: Message, version: int) -> bytes:
    """The version and the message; raises EncodeError."""
    return _VERSION.pack(version) + codec.encode(message, version)


def version_of(data: Buffer) -> int:
    """The version before a message; raises DecodeError."""
    try:
        (version,) = _VERSION.unpack_from(data)
    except StructError:
        raise codec.DecodeError(f"{len(data)} bytes have no room for a version") from None
    return int(version)


def unpack(cls: type[M], data: Buffer) -> M:
    """The message in `data`; raises DecodeError, also for versions unknown here."""
    version = version_of(data)
    if version not in cls.versions:
        raise codec.DecodeError(f"{cls.__name__} has no version {version}")
    return codec.decode_from(cls, data, version, _VERSION.size)[0]


def subscribed_topics(metadata: Buffer) -> frozenset[str] | None:
    """The topics in a consumer's metadata; None where it cannot be read.

    Unknown versions are read as the newest known one, as clients do among each other.
    """
    newest = ConsumerProtocolSubscription.versions.max
    try:
        version = min(max(version_of(metadata), 0), newest)
        subscription, _ = codec.decode_from(
            ConsumerProtocolSubscription, metadata, version, _VERSION.size
        )
    except codec.DecodeError:
        return None
    return frozenset(subscription.topics)
