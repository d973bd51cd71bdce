"""CreatePartitions (key 37): raises the number of partitions of topics.

Versions:
   1: the client does the waiting of a throttle.
   2: flexible.
   3: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
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


class CreatePartitionsAssignment(Struct):
    """Element of `assignments` in the request."""

    broker_ids: list[int] = array(INT32, "0+")


class CreatePartitionsTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    count: int = int32("0+")
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, "0+", nullable="0+"
    )


class CreatePartitionsRequest(Request, api_key=37, versions="0-3", flexible="2+"):
    """CreatePartitions request."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic, "0+")
    timeout_ms: int = int32("0+")
    validate_only: bool = boolean("0+")


class CreatePartitionsTopicResult(Struct):
    """Element of `results` in the response."""

    name: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


class CreatePartitionsResponse(Response, api_key=37, versions="0-3", flexible="2+"):
    """CreatePartitions response."""

    throttle_time_ms: int = int32("0+")
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult, "0+")
