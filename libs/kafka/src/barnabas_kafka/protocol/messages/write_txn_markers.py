"""WriteTxnMarkers (key 27): writes the end of transactions into partitions (broker to broker).

Versions:
   1: flexible.
   2: the transaction version in force; request adds transaction_version.
"""

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
)


class WritableTxnMarkerTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    partition_indexes: list[int] = array(INT32, "0+")


class WritableTxnMarker(Struct):
    """Element of `markers` in the request."""

    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    transaction_result: bool = boolean("0+")
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic, "0+")
    coordinator_epoch: int = int32("0+")
    transaction_version: int = int8("2+", ignorable=True)


class WriteTxnMarkersRequest(Request, api_key=27, versions="0-2", flexible="1+"):
    """WriteTxnMarkers request."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker, "0+")


class WritableTxnMarkerPartitionResult(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class WritableTxnMarkerTopicResult(Struct):
    """Element of `topics` in the response."""

    name: str = string("0+")
    partitions: list[WritableTxnMarkerPartitionResult] = array(
        WritableTxnMarkerPartitionResult, "0+"
    )


class WritableTxnMarkerResult(Struct):
    """Element of `markers` in the response."""

    producer_id: int = int64("0+")
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult, "0+")


class WriteTxnMarkersResponse(Response, api_key=27, versions="0-2", flexible="1+"):
    """WriteTxnMarkers response."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult, "0+")
