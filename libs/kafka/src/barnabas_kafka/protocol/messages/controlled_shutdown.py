"""ControlledShutdown (key 7): asks the controller to move leaders away before a broker stops.

Version 0 is the one request whose header lacks a client id.

Versions:
   2: request adds broker_epoch.
   3: flexible.
"""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    string,
)


class ControlledShutdownRequest(Request, api_key=7, versions="0-3", flexible="3+"):
    """ControlledShutdown request."""

    broker_id: int = int32("0+")
    broker_epoch: int = int64("2+", default=-1, ignorable=True)


class RemainingPartition(Struct):
    """Element of `remaining_partitions` in the response."""

    topic_name: str = string("0+")
    partition_index: int = int32("0+")


class ControlledShutdownResponse(Response, api_key=7, versions="0-3", flexible="3+"):
    """ControlledShutdown response."""

    error_code: int = int16("0+")
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition, "0+")
