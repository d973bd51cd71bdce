"""DescribeProducers (key 61): the active producers of partitions (KIP-664)."""

from barnabas_kafka.protocol.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    string,
)


class TopicRequest(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    partition_indexes: list[int] = array(INT32, "0+")


class DescribeProducersRequest(Request, api_key=61, versions="0", flexible="0+"):
    """DescribeProducers request."""

    topics: list[TopicRequest] = array(TopicRequest, "0+")


class ProducerState(Struct):
    """Element of `active_producers` in the response."""

    producer_id: int = int64("0+")
    producer_epoch: int = int32("0+")
    last_sequence: int = int32("0+", default=-1)
    last_timestamp: int = int64("0+", default=-1)
    coordinator_epoch: int = int32("0+")
    current_txn_start_offset: int = int64("0+", default=-1)


class PartitionResponse(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = array(ProducerState, "0+")


class TopicResponse(Struct):
    """Element of `topics` in the response."""

    name: str = string("0+")
    partitions: list[PartitionResponse] = array(PartitionResponse, "0+")


class DescribeProducersResponse(Response, api_key=61, versions="0", flexible="0+"):
    """DescribeProducers response."""

    throttle_time_ms: int = int32("0+")
    topics: list[TopicResponse] = array(TopicResponse, "0+")
