"""Messages as plain JSON values, in the shape of the `*JsonConverter` classes of kafka-clients.

Fields have Kafka's camelCase names; an id is its 22 characters, bytes and records are base64.
Fields that a version lacks are left out, and so are tagged fields that hold their default.
"""

from base64 import b64decode, b64encode
from typing import Any, TypeVar
from uuid import UUID

from barnabas_kafka.ids import uuid_from_base64, uuid_to_base64
from barnabas_kafka.protocol.schema import (
    BYTES,
    RECORDS,
    UUID_BYTES,
    ArrayOf,
    FieldType,
    Message,
    Primitive,
    Struct,
)

S = TypeVar("S", bound=Struct)

RENAMED = {
    ("FetchableTopicResponse", "partitionResponses"): "partitions",
    ("LeaderAndIsrPartitionState", "zkVersion"): "partitionEpoch",
    ("OffsetCommitRequest", "generationId"): "generationIdOrMemberEpoch",
    ("TxnOffsetCommitRequest", "generationIdOrMemberEpoch"): "generationId",
    ("AddPartitionsToTxnRequest", "transactionalId"): "v3AndBelowTransactionalId",
    ("AddPartitionsToTxnRequest", "producerId"): "v3AndBelowProducerId",
    ("AddPartitionsToTxnRequest", "producerEpoch"): "v3AndBelowProducerEpoch",
    ("AddPartitionsToTxnRequest", "topics"): "v3AndBelowTopics",
    ("AddPartitionsToTxnResponse", "results"): "resultsByTopicV3AndBelow",
    ("AddPartitionsToTxnTopicResult", "results"): "resultsByPartition",
    ("AddPartitionsToTxnPartitionResult", "errorCode"): "partitionErrorCode",
    ("PartitionData", "partition"): "partitionIndex",
    ("PartitionData", "recordSet"): "records",
    ("DescribableLogDirTopic", "partitionIndex"): "partitions",
    ("TopicPartitions", "partitionId"): "partitions",
    ("AlterPartitionRequestTopicData", "name"): "topicName",
    ("AlterPartitionResponseTopicData", "name"): "topicName",
    ("AlterPartitionRequestPartitionData", "currentIsrVersion"): "partitionEpoch",
    ("AlterPartitionResponsePartitionData", "currentIsrVersion"): "partitionEpoch",
}
"""What other releases than 3.9 call some fields: (struct, their name) to our name."""


def to_plain(message: Message, version: int) -> dict[str, Any]:
    """The JSON object that Kafka's converter writes for the message in a version."""
    return _struct_to_plain(message, version)


def from_plain(cls: type[S], plain: dict[str, Any], version: int | None = None) -> S:
    """The message of a JSON object; fields that are left out keep their defaults.

    With a version, fields that the version lacks are ignored rather than taken over.
    """
    fields = {camel_case(name): name for name in cls.__fields__}
    values = {}
    for key, value in plain.items():
        name = fields[RENAMED.get((cls.__name__, key), key)]
        field = cls.__fields__[name]
        if version is None or version in field.versions:
            values[name] = _value_from_plain(field.type, value, version)
    return cls(**values)


def camel_case(name: str) -> str:
    """`throttle_time_ms` as `throttleTimeMs`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _struct_to_plain(value: Struct, version: int) -> dict[str, Any]:
    fresh = type(value)()
    return {
        camel_case(name): _value_to_plain(field.type, getattr(value, name), version)
        for name, field in type(value).__fields__.items()
        if version in field.versions
        and (field.tag is None or getattr(value, name) != getattr(fresh, name))
    }


def _value_to_plain(kind: FieldType, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, ArrayOf):
        return [_value_to_plain(kind.element, item, version) for item in value]
    if not isinstance(kind, Primitive):
        return _struct_to_plain(value, version)
    if kind is UUID_BYTES:
        assert isinstance(value, UUID)
        return uuid_to_base64(value)
    if kind in (BYTES, RECORDS):
        return b64encode(value).decode("ascii")
    return value


def _value_from_plain(kind: FieldType, value: Any, version: int | None) -> Any:
    if value is None:
        return None
    if isinstance(kind, ArrayOf):
        return [_value_from_plain(kind.element, item, version) for item in value]
    if not isinstance(kind, Primitive):
        return from_plain(kind, value, version)
    if kind is UUID_BYTES:
        return uuid_from_base64(value)
    if kind in (BYTES, RECORDS):
        return b64decode(value)
    return value
