"""ListPartitionReassignments (key 46): lists the moves that are under way (KIP-455).

Null topics ask for all.
"""

from barnabas_kafka.protocol.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    string,
)


class ListPartitionReassignmentsTopics(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    partition_indexes: list[int] = array(INT32, "0+")


class ListPartitionReassignmentsRequest(Request, api_key=46, versions="0", flexible="0+"):
    """ListPartitionReassignments request."""

    timeout_ms: int = int32("0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, "0+", nullable="0+", default=None
    )


class OngoingPartitionReassignment(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    replicas: list[int] = array(INT32, "0+")
    adding_replicas: list[int] = array(INT32, "0+")
    removing_replicas: list[int] = array(INT32, "0+")


class OngoingTopicReassignment(Struct):
    """Element of `topics` in the response."""

    name: str = string("0+")
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment, "0+")


class ListPartitionReassignmentsResponse(Response, api_key=46, versions="0", flexible="0+"):
    """ListPartitionReassignments response."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment, "0+")
