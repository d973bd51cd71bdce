"""UpdateMetadata (key 6): spreads cluster metadata to brokers (from the controller).

Versions:
   1: request adds endpoints; request drops v0_host, v0_port.
   2: request adds rack.
   3: request adds listener.
   4: request adds offline_replicas.
   5: request adds broker_epoch, topic_states; request drops ungrouped_partition_states,
      topic_name.
   6: flexible.
   7: request adds topic_id.
   8: request adds is_k_raft_controller, type.
"""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class UpdateMetadataPartitionState(Struct):
    """Element of `ungrouped_partition_states` in the request."""

    topic_name: str = string("0-4", ignorable=True)
    partition_index: int = int32("0+")
    controller_epoch: int = int32("0+")
    leader: int = int32("0+")
    leader_epoch: int = int32("0+")
    isr: list[int] = array(INT32, "0+")
    zk_version: int = int32("0+")
    replicas: list[int] = array(INT32, "0+")
    offline_replicas: list[int] = array(INT32, "4+", ignorable=True)


class UpdateMetadataTopicState(Struct):
    """Element of `topic_states` in the request."""

    topic_name: str = string("5+")
    topic_id: UUID = uuid("7+", ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, "5+")


class UpdateMetadataEndpoint(Struct):
    """Element of `endpoints` in the request."""

    port: int = int32("1+")
    host: str = string("1+")
    listener: str = string("3+", ignorable=True)
    security_protocol: int = int16("1+")


class UpdateMetadataBroker(Struct):
    """Element of `live_brokers` in the request.

    `software` and `epoch` are fields of our own, which Apache's brokers skip: what the broker says
    it runs in its registration, and the epoch of that registration. Brokers offer the newest
    protocols where all of them run this software, as of the newest registration.
    """

    id: int = int32("0+")
    v0_host: str = string("0", ignorable=True)
    v0_port: int = int32("0", ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, "1+", ignorable=True)
    rack: str | None = string("2+", nullable="2+", ignorable=True)
    software: str | None = string("6+", nullable="6+", default=None, ignorable=True, tag=100)
    epoch: int = int64("6+", default=-1, ignorable=True, tag=101)


class UpdateMetadataRequest(Request, api_key=6, versions="0-8", flexible="6+"):
    """UpdateMetadata request."""

    controller_id: int = int32("0+")
    is_k_raft_controller: bool = boolean("8+")
    type: int = int8("8+", tag=0)
    controller_epoch: int = int32("0+")
    broker_epoch: int = int64("5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(
        UpdateMetadataPartitionState, "0-4"
    )
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, "5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker, "0+")


class UpdateMetadataResponse(Response, api_key=6, versions="0-8", flexible="6+"):
    """UpdateMetadata response."""

    error_code: int = int16("0+")
