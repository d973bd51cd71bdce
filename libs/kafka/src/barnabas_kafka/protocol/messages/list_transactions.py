"""ListTransactions (key 66): lists the transactions a broker coordinates (KIP-664).

Versions:
   1: filter by duration (KIP-994); request adds duration_filter.
   2: filter by pattern (KIP-1152); request adds transactional_id_pattern.
"""

from barnabas_kafka.protocol.schema import (
    INT64,
    STRING,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    string,
)


class ListTransactionsRequest(Request, api_key=66, versions="0-2", flexible="0+"):
    """ListTransactions request."""

    state_filters: list[str] = array(STRING, "0+")
    producer_id_filters: list[int] = array(INT64, "0+")
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)


class TransactionState(Struct):
    """Element of `transaction_states` in the response."""

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    transaction_state: str = string("0+")


class ListTransactionsResponse(Response, api_key=66, versions="0-2", flexible="0+"):
    """ListTransactions response."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    unknown_state_filters: list[str] = array(STRING, "0+")
    transaction_states: list[TransactionState] = array(TransactionState, "0+")
