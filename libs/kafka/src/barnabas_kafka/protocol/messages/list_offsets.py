"""ListOffsets (key 2): finds offsets by timestamp, or the first or last.

Negative timestamps have meanings of their own: see `barnabas_kafka.ids`.

Versions:
   1: one offset with its timestamp instead of a list; request drops max_num_offsets; response
      adds timestamp, offset; response drops old_style_offsets.
   2: request adds isolation_level; response adds throttle_time_ms.
   3: the client does the waiting of a throttle.
   4: request adds current_leader_epoch; response adds leader_epoch.
   5: OFFSET_NOT_AVAILABLE may be answered.
   6: flexible.
   7: timestamp -3: the record with the greatest timestamp.
   8: timestamp -4: the first local offset.
   9: timestamp -5: the last tiered offset.
  10: the time the broker may wait for tiered storage; request adds timeout_ms.
  11: timestamp -6: the first offset not uploaded yet.
"""

from barnabas_kafka.protocol.schema import (
    INT64,
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
)


class ListOffsetsPartition(Struct):
    """Element of `partitions` in the request."""

    partition_index: int = int32("0+")
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64("0+")
    max_num_offsets: int = int32("0", default=1)


class ListOffsetsTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition, "0+")


class ListOffsetsRequest(Request, api_key=2, versions="0-11", flexible="6+"):
    """ListOffsets request."""

    replica_id: int = int32("0+")
    isolation_level: int = int8("2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic, "0+")
    timeout_ms: int = int32("10+", ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    old_style_offsets: list[int] = array(INT64, "0")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    """Element of `topics` in the response."""

    name: str = string("0+")
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse, "0+")


class ListOffsetsResponse(Response, api_key=2, versions="0-11", flexible="6+"):
    """ListOffsets response."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse, "0+")
