"""AlterPartitionReassignments (key 45): moves partitions to other replicas (KIP-455).

Null replicas cancel a move.

Versions:
   1: whether the replication factor may change; request adds allow_replication_factor_change;
      response adds allow_replication_factor_change.
"""

from barnabas_kafka.protocol.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    boolean,
    int16,
    int32,
    string,
)


class ReassignablePartition(Struct):
    """Element of `partitions` in the request."""

    partition_index: int = int32("0+")
    replicas: list[int] | None = array(INT32, "0+", nullable="0+", default=None)


class ReassignableTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    partitions: list[ReassignablePartition] = array(ReassignablePartition, "0+")


class AlterPartitionReassignmentsRequest(Request, api_key=45, versions="0-1", flexible="0+"):
    """AlterPartitionReassignments request."""

    timeout_ms: int = int32("0+", default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic, "0+")


class ReassignablePartitionResponse(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class ReassignableTopicResponse(Struct):
    """Element of `responses` in the response."""

    name: str = string("0+")
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse, "0+")


class AlterPartitionReassignmentsResponse(Response, api_key=45, versions="0-1", flexible="0+"):
    """AlterPartitionReassignments response."""

    throttle_time_ms: int = int32("0+")
    allow_replication_factor_change: bool = boolean("1+", default=True, ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse, "0+")
