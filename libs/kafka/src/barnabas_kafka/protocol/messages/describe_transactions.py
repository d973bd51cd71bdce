"""DescribeTransactions (key 65): the state of transactions (KIP-664)."""

from barnabas_kafka.protocol.schema import (
    INT32,
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


class DescribeTransactionsRequest(Request, api_key=65, versions="0", flexible="0+"):
    """DescribeTransactions request."""

    transactional_ids: list[str] = array(STRING, "0+")


class TopicData(Struct):
    """Element of `topics` in the response."""

    topic: str = string("0+")
    partitions: list[int] = array(INT32, "0+")


class TransactionState(Struct):
    """Element of `transaction_states` in the response."""

    error_code: int = int16("0+")
    transactional_id: str = string("0+")
    transaction_state: str = string("0+")
    transaction_timeout_ms: int = int32("0+")
    transaction_start_time_ms: int = int64("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    topics: list[TopicData] = array(TopicData, "0+")


class DescribeTransactionsResponse(Response, api_key=65, versions="0", flexible="0+"):
    """DescribeTransactions response."""

    throttle_time_ms: int = int32("0+")
    transaction_states: list[TransactionState] = array(TransactionState, "0+")
