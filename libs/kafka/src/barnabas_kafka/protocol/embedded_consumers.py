"""Records of `__consumer_offsets` that the next-generation protocol writes (KIP-848, KIP-1071).

    key version   key                   value (version 0), null where the thing has ended
    3             GroupKey              ConsumerGroupMetadataValue
    4             GroupKey              ConsumerGroupPartitionMetadataValue
    5             GroupMemberKey        ConsumerGroupMemberMetadataValue
    6             GroupKey              ConsumerGroupTargetAssignmentMetadataValue
    7             GroupMemberKey        ConsumerGroupTargetAssignmentMemberValue
    8             GroupMemberKey        ConsumerGroupCurrentMemberAssignmentValue
    16            GroupExpressionKey    ConsumerGroupRegularExpressionValue

Each is preceded by its version (`embedded.pack`, `embedded.unpack`). The names are those of Kafka's
schemas; keys that hold the same fields share a class here.
"""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    INT32,
    STRING,
    Message,
    Struct,
    array,
    binary,
    int8,
    int32,
    int64,
    string,
    struct,
    uuid,
)


class GroupKey(Message, versions="3-6"):
    """Which group it is."""

    group_id: str = string("3+")


class GroupMemberKey(Message, versions="5-8"):
    """Which member of which group it is."""

    group_id: str = string("5+")
    member_id: str = string("5+")


class GroupExpressionKey(Message, versions="16"):
    """Which regular expression of which group it is."""

    group_id: str = string("16")
    regular_expression: str = string("16")


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    """The epoch of a group; the hash of its topics' metadata is written from Kafka 4.1 on."""

    epoch: int = int32("0+")
    metadata_hash: int = int64("0+", tag=0)


class PartitionMetadata(Struct):
    """Element of `partition_metadata`: the racks of a partition's replicas."""

    partition: int = int32("0+")
    racks: list[str] = array(STRING, "0+")


class TopicMetadata(Struct):
    """Element of `topics` in ConsumerGroupPartitionMetadataValue."""

    topic_id: UUID = uuid("0+")
    topic_name: str = string("0+")
    num_partitions: int = int32("0+")
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata, "0+")


class ConsumerGroupPartitionMetadataValue(Message, versions="0", flexible="0+"):
    """The topics a group subscribes to as they were when its epoch was last raised."""

    topics: list[TopicMetadata] = array(TopicMetadata, "0+")


class ClassicProtocol(Struct):
    """Element of `supported_protocols`."""

    name: str = string("0+")
    metadata: bytes = binary("0+")


class ClassicMemberMetadata(Struct):
    """The metadata of a classic-protocol member in a group of the consumer protocol."""

    session_timeout_ms: int = int32("0+")
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol, "0+")


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    """What a member subscribes to; null for those that do not use the classic protocol."""

    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(STRING, "0+")
    subscribed_topic_regex: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    server_assignor: str | None = string("0+", nullable="0+", default=None)
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, "0+", nullable="0+", tag=0
    )


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    """The epoch that the target assignment was made for."""

    assignment_epoch: int = int32("0+")


class AssignedTopic(Struct):
    """Partitions of a topic in an assignment."""

    topic_id: UUID = uuid("0+")
    partitions: list[int] = array(INT32, "0+")


class ConsumerGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    """The target assignment of a member."""

    topic_partitions: list[AssignedTopic] = array(AssignedTopic, "0+")


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    """What a member reads now, and what it has yet to give up."""

    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[AssignedTopic] = array(AssignedTopic, "0+")
    partitions_pending_revocation: list[AssignedTopic] = array(AssignedTopic, "0+")


class ConsumerGroupRegularExpressionValue(Message, versions="0", flexible="0+"):
    """The topics that an expression matched, in which version of the metadata, and when."""

    topics: list[str] = array(STRING, "0+")
    version: int = int64("0+")
    timestamp: int = int64("0+")
