"""Fetch (key 1): reads record batches, for consumers and for followers.

A request with an open session lists only what changed since the last (KIP-227).

Versions:
   1: response adds throttle_time_ms.
   2: records of format 1.
   3: order of partitions counts, and the first batch comes whole whatever the limits (KIP-74);
      request adds max_bytes.
   4: records of format 2, reading committed only; request adds isolation_level; response adds
      last_stable_offset, aborted_transactions.
   5: request adds log_start_offset; response adds log_start_offset.
   6: KAFKA_STORAGE_ERROR may be answered.
   7: request adds session_id, session_epoch, forgotten_topics_data; response adds error_code,
      session_id.
   8: the client does the waiting of a throttle.
   9: request adds current_leader_epoch.
  10: zstd is allowed.
  11: request adds rack_id; response adds preferred_read_replica.
  12: flexible; request adds cluster_id, last_fetched_epoch; response adds diverging_epoch,
      current_leader, snapshot_id.
  13: topics by id instead of name (KIP-516); request adds topic_id; request drops topic;
      response adds topic_id; response drops topic.
  14: tiered storage (KIP-405).
  15: replica id moves into the tagged replica_state (KIP-903); request adds replica_state;
      request drops replica_id.
  16: response adds node_endpoints.
  17: directory ids of KRaft (KIP-853); request adds replica_directory_id.
  18: followers send their high watermark (KIP-1166); request adds high_watermark.
"""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    INT32,
    RecordBytes,
    RecordSource,
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    record_source,
    string,
    struct,
    uuid,
)


class ReplicaState(Struct):
    """Value of `replica_state` in the request."""

    replica_id: int = int32("15+", default=-1)
    replica_epoch: int = int64("15+", default=-1)


class FetchPartition(Struct):
    """Element of `partitions` in the request."""

    partition: int = int32("0+")
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
    fetch_offset: int = int64("0+")
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32("0+")
    replica_directory_id: UUID = uuid("17+", ignorable=True, tag=0)
    high_watermark: int = int64("18+", default=0x7FFF_FFFF_FFFF_FFFF, ignorable=True, tag=1)


class FetchTopic(Struct):
    """Element of `topics` in the request."""

    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition, "0+")


class ForgottenTopic(Struct):
    """Element of `forgotten_topics_data` in the request."""

    topic: str = string("7-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[int] = array(INT32, "7+")


class FetchRequest(Request, api_key=1, versions="0-18", flexible="12+"):
    """Fetch request."""

    cluster_id: str | None = string("12+", nullable="12+", default=None, ignorable=True, tag=0)
    replica_id: int = int32("0-14", default=-1)
    replica_state: ReplicaState = struct(ReplicaState, "15+", tag=1)
    max_wait_ms: int = int32("0+")
    min_bytes: int = int32("0+")
    max_bytes: int = int32("3+", default=0x7FFF_FFFF, ignorable=True)
    isolation_level: int = int8("4+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic, "0+")
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "7+")
    rack_id: str = string("11+", ignorable=True)


class EpochEndOffset(Struct):
    """Value of `diverging_epoch` in the response."""

    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


class LeaderIdAndEpoch(Struct):
    """Value of `current_leader` in the response."""

    leader_id: int = int32("12+", default=-1)
    leader_epoch: int = int32("12+", default=-1)


class SnapshotId(Struct):
    """Value of `snapshot_id` in the response."""

    end_offset: int = int64("0+", default=-1)
    epoch: int = int32("0+", default=-1)


class AbortedTransaction(Struct):
    """Element of `aborted_transactions` in the response."""

    producer_id: int = int64("4+")
    first_offset: int = int64("4+")


class PartitionData(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    high_watermark: int = int64("0+")
    last_stable_offset: int = int64("4+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32("11+", default=-1)
    records: RecordBytes | RecordSource | None = record_source("0+", nullable="0+")


class FetchableTopicResponse(Struct):
    """Element of `responses` in the response."""

    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData, "0+")


class NodeEndpoint(Struct):
    """Element of `node_endpoints` in the response."""

    node_id: int = int32("16+")
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = string("16+", nullable="16+", default=None)


class FetchResponse(Response, api_key=1, versions="0-18", flexible="12+"):
    """Fetch response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse, "0+")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", tag=0)
