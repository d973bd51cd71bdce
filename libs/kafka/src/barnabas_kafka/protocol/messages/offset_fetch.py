"""OffsetFetch (key 9): reads a group's committed offsets.

Null topics ask for all partitions of the group.

Versions:
   2: all topics may be asked for; request: topics may be null; response adds error_code.
   3: response adds throttle_time_ms.
   5: response adds committed_leader_epoch.
   6: flexible.
   7: request adds require_stable.
   8: several groups in one request (KIP-709); request adds groups; request drops group_id,
      topics; response adds groups; response drops topics, error_code.
   9: request adds member_id, member_epoch.
  10: topics by id; request adds topic_id; request drops name; response adds topic_id; response
      drops name.
"""

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
    int64,
    string,
    uuid,
)


class OffsetFetchRequestTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0-7")
    partition_indexes: list[int] = array(INT32, "0-7")


class OffsetFetchRequestTopics(Struct):
    """Element of `topics` in the request."""

    name: str = string("8-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partition_indexes: list[int] = array(INT32, "8+")


class OffsetFetchRequestGroup(Struct):
    """Element of `groups` in the request."""

    group_id: str = string("8+")
    member_id: str | None = string("9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = int32("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(
        OffsetFetchRequestTopics, "8+", nullable="8+"
    )


class OffsetFetchRequest(Request, api_key=9, versions="0-10", flexible="6+"):
    """OffsetFetch request."""

    group_id: str = string("0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


class OffsetFetchResponsePartition(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0-7")
    committed_offset: int = int64("0-7")
    committed_leader_epoch: int = int32("5-7", default=-1, ignorable=True)
    metadata: str | None = string("0-7", nullable="0-7")
    error_code: int = int16("0-7")


class OffsetFetchResponseTopic(Struct):
    """Element of `topics` in the response."""

    name: str = string("0-7")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, "0-7")


class OffsetFetchResponsePartitions(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1, ignorable=True)
    metadata: str | None = string("8+", nullable="8+")
    error_code: int = int16("8+")


class OffsetFetchResponseTopics(Struct):
    """Element of `topics` in the response."""

    name: str = string("8-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, "8+")


class OffsetFetchResponseGroup(Struct):
    """Element of `groups` in the response."""

    group_id: str = string("8+")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, "8+")
    error_code: int = int16("8+")


class OffsetFetchResponse(Response, api_key=9, versions="0-10", flexible="6+"):
    """OffsetFetch response."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+")
