"""Metadata (key 3): brokers, topics, partitions and their leaders.

Version 0 asks for all topics with an empty list; later ones with null, and empty means none.

Versions:
   1: request: topics may be null; response adds rack, controller_id, is_internal.
   2: response adds cluster_id.
   3: response adds throttle_time_ms.
   4: request adds allow_auto_topic_creation.
   5: offline replicas; response adds offline_replicas.
   6: the client does the waiting of a throttle.
   7: response adds leader_epoch.
   8: request adds include_cluster_authorized_operations, include_topic_authorized_operations;
      response adds topic_authorized_operations, cluster_authorized_operations.
   9: flexible.
  10: topic ids are returned, but not yet accepted in the request; request adds topic_id; request:
      name may be null; response adds topic_id.
  11: request drops include_cluster_authorized_operations; response drops
      cluster_authorized_operations.
  12: topics may be asked for by id; response: name may be null.
  13: a top-level error (KIP-1102); response adds error_code.
"""

from uuid import UUID

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
    uuid,
)


class MetadataRequestTopic(Struct):
    """Element of `topics` in the request."""

    topic_id: UUID = uuid("10+", ignorable=True)
    name: str | None = string("0+", nullable="10+")


class MetadataRequest(Request, api_key=3, versions="0-13", flexible="9+"):
    """Metadata request."""

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, "0+", nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


class MetadataResponseBroker(Struct):
    """Element of `brokers` in the response."""

    node_id: int = int32("0+")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    """Element of `partitions` in the response."""

    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(INT32, "0+")
    isr_nodes: list[int] = array(INT32, "0+")
    offline_replicas: list[int] = array(INT32, "5+", ignorable=True)


class MetadataResponseTopic(Struct):
    """Element of `topics` in the response."""

    error_code: int = int16("0+")
    name: str | None = string("0+", nullable="12+")
    topic_id: UUID = uuid("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition, "0+")
    topic_authorized_operations: int = int32("8+", default=-0x8000_0000)


class MetadataResponse(Response, api_key=3, versions="0-13", flexible="9+"):
    """Metadata response."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker, "0+")
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic, "0+")
    cluster_authorized_operations: int = int32("8-10", default=-0x8000_0000)
    error_code: int = int16("13+", ignorable=True)
