"""OffsetDelete (key 47): deletes committed offsets of a group (KIP-496).

Never flexible.
"""

from barnabas_kafka.protocol.schema import Request, Response, Struct, array, int16, int32, string


class OffsetDeleteRequestPartition(Struct):
    """Element of `partitions` in the request."""

    partition_index: int = int32("0+")


class OffsetDeleteRequestTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition, "0+")


class OffsetDeleteRequest(Request, api_key=47, versions="0"):
    """OffsetDelete request."""

    group_id: str = string("0+")
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic, "0+")


class OffsetDeleteResponsePartition(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class OffsetDeleteResponseTopic(Struct):
    """Element of `topics` in the response."""

    name: str = string("0+")
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition, "0+")


class OffsetDeleteResponse(Response, api_key=47, versions="0"):
    """OffsetDelete response."""

    error_code: int = int16("0+")
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic, "0+")
