"""TxnOffsetCommit (key 28): commits a group's offsets inside a transaction.

Versions:
   1: the client does the waiting of a throttle.
   2: request adds committed_leader_epoch.
   3: flexible; request adds generation_id, member_id, group_instance_id.
   4: TRANSACTION_ABORTABLE may be answered.
   5: the group joins the transaction implicitly (KIP-890).
   6: topics by id instead of name (KIP-1319); what Kafka then calls
      generation_id_or_member_epoch is `generation_id` here; request adds topic_id; request
      drops name; response adds topic_id; response drops name.
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


class TxnOffsetCommitRequestPartition(Struct):
    """Element of `partitions` in the request."""

    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string("0+", nullable="0+")


class TxnOffsetCommitRequestTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0-5", ignorable=True)
    topic_id: UUID = uuid("6+", ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition, "0+")


class TxnOffsetCommitRequest(Request, api_key=28, versions="0-6", flexible="3+"):
    """TxnOffsetCommit request."""

    transactional_id: str = string("0+")
    group_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic, "0+")


class TxnOffsetCommitResponsePartition(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class TxnOffsetCommitResponseTopic(Struct):
    """Element of `topics` in the response."""

    name: str = string("0-5", ignorable=True)
    topic_id: UUID = uuid("6+", ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = array(
        TxnOffsetCommitResponsePartition, "0+"
    )


class TxnOffsetCommitResponse(Response, api_key=28, versions="0-6", flexible="3+"):
    """TxnOffsetCommit response."""

    throttle_time_ms: int = int32("0+")
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic, "0+")
