"""DeleteRecords (key 21): deletes the records before an offset.

Offset -1 means the high watermark.

Versions:
   1: the client does the waiting of a throttle.
   2: flexible.
"""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    string,
)


class DeleteRecordsPartition(Struct):
    """Element of `partitions` in the request."""

    partition_index: int = int32("0+")
    offset: int = int64("0+")


class DeleteRecordsTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition, "0+")


class DeleteRecordsRequest(Request, api_key=21, versions="0-2", flexible="2+"):
    """DeleteRecords request."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic, "0+")
    timeout_ms: int = int32("0+")


class DeleteRecordsPartitionResult(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    low_watermark: int = int64("0+")
    error_code: int = int16("0+")


class DeleteRecordsTopicResult(Struct):
    """Element of `topics` in the response."""

    name: str = string("0+")
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult, "0+")


class DeleteRecordsResponse(Response, api_key=21, versions="0-2", flexible="2+"):
    """DeleteRecords response."""

    throttle_time_ms: int = int32("0+")
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult, "0+")
