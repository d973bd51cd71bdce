"""OffsetCommit (key 8): stores how far a group has read.

Versions:
   1: request adds generation_id_or_member_epoch, member_id, commit_timestamp.
   2: request adds retention_time_ms; request drops commit_timestamp.
   3: response adds throttle_time_ms.
   5: retention is the broker's affair; request drops retention_time_ms.
   6: request adds committed_leader_epoch.
   7: request adds group_instance_id.
   8: flexible.
   9: also for the consumer protocol of KIP-848: member epochs as generation.
  10: topics by id; request adds topic_id; request drops name; response adds topic_id; response
      drops name.
"""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class OffsetCommitRequestPartition(Struct):
    """Element of `partitions` in the request."""

    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    commit_timestamp: int = int64("1", default=-1)
    committed_metadata: str | None = string("0+", nullable="0+")


class OffsetCommitRequestTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition, "0+")


class OffsetCommitRequest(Request, api_key=8, versions="0-10", flexible="8+"):
    """OffsetCommit request."""

    group_id: str = string("0+")
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic, "0+")


class OffsetCommitResponsePartition(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class OffsetCommitResponseTopic(Struct):
    """Element of `topics` in the response."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition, "0+")


class OffsetCommitResponse(Response, api_key=8, versions="0-10", flexible="8+"):
    """OffsetCommit response."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic, "0+")
