"""DescribeTopicPartitions (key 75): topics page by page (KIP-966)."""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    boolean,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class TopicRequest(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")


class Cursor(Struct):
    """Value of `cursor` in the request."""

    topic_name: str = string("0+")
    partition_index: int = int32("0+")


class DescribeTopicPartitionsRequest(Request, api_key=75, versions="0", flexible="0+"):
    """DescribeTopicPartitions request."""

    topics: list[TopicRequest] = array(TopicRequest, "0+")
    response_partition_limit: int = int32("0+", default=2000)
    cursor: Cursor | None = struct(Cursor, "0+", nullable="0+")


class DescribeTopicPartitionsResponsePartition(Struct):
    """Element of `partitions` in the response."""

    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(INT32, "0+")
    isr_nodes: list[int] = array(INT32, "0+")
    eligible_leader_replicas: list[int] | None = array(INT32, "0+", nullable="0+", default=None)
    last_known_elr: list[int] | None = array(INT32, "0+", nullable="0+", default=None)
    offline_replicas: list[int] = array(INT32, "0+", ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    """Element of `topics` in the response."""

    error_code: int = int16("0+")
    name: str | None = string("0+", nullable="0+")
    topic_id: UUID = uuid("0+", ignorable=True)
    is_internal: bool = boolean("0+", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition, "0+"
    )
    topic_authorized_operations: int = int32("0+", default=-0x8000_0000)


class DescribeTopicPartitionsResponse(Response, api_key=75, versions="0", flexible="0+"):
    """DescribeTopicPartitions response."""

    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(
        DescribeTopicPartitionsResponseTopic, "0+"
    )
    next_cursor: Cursor | None = struct(Cursor, "0+", nullable="0+")
