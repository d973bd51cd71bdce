"""AlterPartition (key 56): asks the controller to change a partition's in-sync replicas (KIP-497).

Kafka before 3.0 calls it AlterIsr.

Versions:
   1: recovery of unclean leaders (KIP-704); request adds leader_recovery_state; response adds
      leader_recovery_state.
   2: topics by id; request adds topic_id; request drops topic_name; response adds topic_id;
      response drops topic_name.
   3: in-sync replicas with their broker epochs (KIP-903); request adds new_isr_with_epochs;
      request drops new_isr.
"""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class BrokerState(Struct):
    """Element of `new_isr_with_epochs` in the request."""

    broker_id: int = int32("3+")
    broker_epoch: int = int64("3+", default=-1)


class AlterPartitionRequestPartitionData(Struct):
    """Element of `partitions` in the request."""

    partition_index: int = int32("0+")
    leader_epoch: int = int32("0+")
    new_isr: list[int] = array(INT32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = int8("1+")
    partition_epoch: int = int32("0+")


class AlterPartitionRequestTopicData(Struct):
    """Element of `topics` in the request."""

    topic_name: str = string("0-1", ignorable=True)
    topic_id: UUID = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData] = array(
        AlterPartitionRequestPartitionData, "0+"
    )


class AlterPartitionRequest(Request, api_key=56, versions="0-3", flexible="0+"):
    """AlterPartition request."""

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    topics: list[AlterPartitionRequestTopicData] = array(AlterPartitionRequestTopicData, "0+")


class AlterPartitionResponsePartitionData(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    isr: list[int] = array(INT32, "0+")
    leader_recovery_state: int = int8("1+", ignorable=True)
    partition_epoch: int = int32("0+")


class AlterPartitionResponseTopicData(Struct):
    """Element of `topics` in the response."""

    topic_name: str = string("0-1", ignorable=True)
    topic_id: UUID = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData] = array(
        AlterPartitionResponsePartitionData, "0+"
    )


class AlterPartitionResponse(Response, api_key=56, versions="0-3", flexible="0+"):
    """AlterPartition response."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    topics: list[AlterPartitionResponseTopicData] = array(AlterPartitionResponseTopicData, "0+")
