"""EndTxn (key 26): commits or aborts a transaction.

Versions:
   1: the client does the waiting of a throttle.
   2: PRODUCER_FENCED may be answered.
   3: flexible.
   4: TRANSACTION_ABORTABLE may be answered.
   5: the epoch is bumped by every end (KIP-890); response adds producer_id, producer_epoch.
"""

from barnabas_kafka.protocol.schema import Request, Response, boolean, int16, int32, int64, string


class EndTxnRequest(Request, api_key=26, versions="0-5", flexible="3+"):
    """EndTxn request."""

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    committed: bool = boolean("0+")


class EndTxnResponse(Response, api_key=26, versions="0-5", flexible="3+"):
    """EndTxn response."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
