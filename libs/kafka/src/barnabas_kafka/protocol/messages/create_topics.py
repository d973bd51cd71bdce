"""CreateTopics (key 19): creates topics.

Versions:
   1: request adds validate_only; response adds error_message.
   2: response adds throttle_time_ms.
   4: partition count and replication factor may be -1: the broker's defaults (KIP-464).
   5: flexible; response adds topic_config_error_code, num_partitions, replication_factor,
      configs.
   6: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
   7: response adds topic_id.
"""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    string,
    uuid,
)


class CreatableReplicaAssignment(Struct):
    """Element of `assignments` in the request."""

    partition_index: int = int32("0+")
    broker_ids: list[int] = array(INT32, "0+")


class CreatableTopicConfig(Struct):
    """Element of `configs` in the request."""

    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")


class CreatableTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    num_partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment, "0+")
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig, "0+")


class CreateTopicsRequest(Request, api_key=19, versions="0-7", flexible="5+"):
    """CreateTopics request."""

    topics: list[CreatableTopic] = array(CreatableTopic, "0+")
    timeout_ms: int = int32("0+", default=60000)
    validate_only: bool = boolean("1+")


class CreatableTopicConfigs(Struct):
    """Element of `configs` in the response."""

    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("5+")


class CreatableTopicResult(Struct):
    """Element of `topics` in the response."""

    name: str = string("0+")
    topic_id: UUID = uuid("7+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("1+", nullable="1+", ignorable=True)
    topic_config_error_code: int = int16("5+", ignorable=True, tag=0)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, "5+", nullable="5+", ignorable=True
    )


class CreateTopicsResponse(Response, api_key=19, versions="0-7", flexible="5+"):
    """CreateTopics response."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult, "0+")
