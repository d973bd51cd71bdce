"""ElectLeaders (key 43): elects leaders of partitions.

Null partitions mean all.

Versions:
   1: unclean elections (KIP-460); request adds election_type; response adds error_code.
   2: flexible.
"""

from barnabas_kafka.protocol.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    string,
)


class TopicPartitions(Struct):
    """Element of `topic_partitions` in the request."""

    topic: str = string("0+")
    partitions: list[int] = array(INT32, "0+")


class ElectLeadersRequest(Request, api_key=43, versions="0-2", flexible="2+"):
    """ElectLeaders request."""

    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, "0+", nullable="0+")
    timeout_ms: int = int32("0+", default=60000)


class PartitionResult(Struct):
    """Element of `partition_result` in the response."""

    partition_id: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class ReplicaElectionResult(Struct):
    """Element of `replica_election_results` in the response."""

    topic: str = string("0+")
    partition_result: list[PartitionResult] = array(PartitionResult, "0+")


class ElectLeadersResponse(Response, api_key=43, versions="0-2", flexible="2+"):
    """ElectLeaders response."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult, "0+")
