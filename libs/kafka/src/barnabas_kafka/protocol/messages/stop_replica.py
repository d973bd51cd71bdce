"""StopReplica (key 5): stops or deletes replicas of a broker (from the controller).

Versions:
   1: request adds broker_epoch, topics; request drops ungrouped_partitions.
   2: flexible.
   3: grouped by topic, with leader epochs (KIP-570); request adds topic_states; request drops
      delete_partitions, topics.
   4: request adds is_k_raft_controller.
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
    int64,
    string,
)


class StopReplicaPartitionV0(Struct):
    """Element of `ungrouped_partitions` in the request."""

    topic_name: str = string("0")
    partition_index: int = int32("0")


class StopReplicaTopicV1(Struct):
    """Element of `topics` in the request."""

    name: str = string("1-2")
    partition_indexes: list[int] = array(INT32, "1-2")


class StopReplicaPartitionState(Struct):
    """Element of `partition_states` in the request."""

    partition_index: int = int32("3+")
    leader_epoch: int = int32("3+", default=-1)
    delete_partition: bool = boolean("3+")


class StopReplicaTopicState(Struct):
    """Element of `topic_states` in the request."""

    topic_name: str = string("3+")
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState, "3+")


class StopReplicaRequest(Request, api_key=5, versions="0-4", flexible="2+"):
    """StopReplica request."""

    controller_id: int = int32("0+")
    is_k_raft_controller: bool = boolean("4+")
    controller_epoch: int = int32("0+")
    broker_epoch: int = int64("1+", default=-1, ignorable=True)
    delete_partitions: bool = boolean("0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = array(StopReplicaPartitionV0, "0")
    topics: list[StopReplicaTopicV1] = array(StopReplicaTopicV1, "1-2")
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, "3+")


class StopReplicaPartitionError(Struct):
    """Element of `partition_errors` in the response."""

    topic_name: str = string("0+")
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class StopReplicaResponse(Response, api_key=5, versions="0-4", flexible="2+"):
    """StopReplica response."""

    error_code: int = int16("0+")
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError, "0+")
