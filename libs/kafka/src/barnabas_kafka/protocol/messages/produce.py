"""Produce (key 0): appends record batches to partitions.

With `acks=0` the broker sends no response at all, not even an error.

Versions:
   1: response adds throttle_time_ms.
   2: records of format 1, with timestamps; response adds log_append_time_ms.
   3: records of format 2 only, one batch per partition; request adds transactional_id.
   4: KAFKA_STORAGE_ERROR may be answered.
   5: response adds log_start_offset.
   6: the client does the waiting of a throttle.
   7: zstd is allowed.
   8: response adds record_errors, error_message.
   9: flexible.
  10: response names the new leader on NOT_LEADER_OR_FOLLOWER (KIP-951); response adds
      current_leader, node_endpoints.
  11: as 10; transactions may answer ABORTABLE_TRANSACTION.
  12: partitions join the transaction implicitly (KIP-890).
  13: topics by id instead of name (KIP-516); request adds topic_id; request drops name;
      response adds topic_id; response drops name.
"""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    RecordBytes,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    record_data,
    string,
    struct,
    uuid,
)


class PartitionProduceData(Struct):
    """Element of `partition_data` in the request."""

    index: int = int32("0+")
    records: RecordBytes | None = record_data("0+", nullable="0+")


class TopicProduceData(Struct):
    """Element of `topic_data` in the request."""

    name: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData, "0+")


class ProduceRequest(Request, api_key=0, versions="0-13", flexible="9+"):
    """Produce request."""

    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = int16("0+")
    timeout_ms: int = int32("0+")
    topic_data: list[TopicProduceData] = array(TopicProduceData, "0+")


class BatchIndexAndErrorMessage(Struct):
    """Element of `record_errors` in the response."""

    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    """Value of `current_leader` in the response."""

    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


class PartitionProduceResponse(Struct):
    """Element of `partition_responses` in the response."""

    index: int = int32("0+")
    error_code: int = int16("0+")
    base_offset: int = int64("0+")
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Struct):
    """Element of `responses` in the response."""

    name: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse, "0+")


class NodeEndpoint(Struct):
    """Element of `node_endpoints` in the response."""

    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="10+", default=None)


class ProduceResponse(Response, api_key=0, versions="0-13", flexible="9+"):
    """Produce response."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
