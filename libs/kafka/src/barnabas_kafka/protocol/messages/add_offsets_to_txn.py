"""AddOffsetsToTxn (key 25): adds a group's offsets to a transaction.

Versions:
   1: the client does the waiting of a throttle.
   2: PRODUCER_FENCED may be answered.
   3: flexible.
   4: TRANSACTION_ABORTABLE may be answered.
"""

from barnabas_kafka.protocol.schema import Request, Response, int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, api_key=25, versions="0-4", flexible="3+"):
    """AddOffsetsToTxn request."""

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    group_id: str = string("0+")


class AddOffsetsToTxnResponse(Response, api_key=25, versions="0-4", flexible="3+"):
    """AddOffsetsToTxn response."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
