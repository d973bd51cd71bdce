"""ConsumerGroupHeartbeat (key 68): keeps a member in its group (KIP-848).

Versions:
   1: subscription by pattern, member ids made by the client; request adds
      subscribed_topic_regex.
"""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    INT32,
    STRING,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class TopicPartitions(Struct):
    """Element of `topic_partitions` in the request."""

    topic_id: UUID = uuid("0+")
    partitions: list[int] = array(INT32, "0+")


class ConsumerGroupHeartbeatRequest(Request, api_key=68, versions="0-1", flexible="0+"):
    """ConsumerGroupHeartbeat request."""

    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    subscribed_topic_names: list[str] | None = array(STRING, "0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string("0+", nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = array(
        TopicPartitions, "0+", nullable="0+", default=None
    )


class Assignment(Struct):
    """Value of `assignment` in the response."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")


class ConsumerGroupHeartbeatResponse(Response, api_key=68, versions="0-1", flexible="0+"):
    """ConsumerGroupHeartbeat response."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = struct(Assignment, "0+", nullable="0+")
