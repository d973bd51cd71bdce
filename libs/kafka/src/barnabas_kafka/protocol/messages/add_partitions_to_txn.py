"""AddPartitionsToTxn (key 24): adds partitions to a transaction.

Versions from 4 are spoken between brokers only.

Versions:
   1: the client does the waiting of a throttle.
   2: PRODUCER_FENCED may be answered.
   3: flexible.
   4: several transactions in one request, to verify or add (KIP-890); request adds
      transactions; request drops v3_and_below_transactional_id, v3_and_below_producer_id,
      v3_and_below_producer_epoch, v3_and_below_topics; response adds error_code,
      results_by_transaction; response drops results_by_topic_v3_and_below.
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
    int64,
    string,
)


class AddPartitionsToTxnTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    partitions: list[int] = array(INT32, "0+")


class AddPartitionsToTxnTransaction(Struct):
    """Element of `transactions` in the request."""

    transactional_id: str = string("4+")
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "4+")


class AddPartitionsToTxnRequest(Request, api_key=24, versions="0-5", flexible="3+"):
    """AddPartitionsToTxn request."""

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "0-3")


class AddPartitionsToTxnPartitionResult(Struct):
    """Element of `results_by_partition` in the response."""

    partition_index: int = int32("0+")
    partition_error_code: int = int16("0+")


class AddPartitionsToTxnTopicResult(Struct):
    """Element of `topic_results` in the response."""

    name: str = string("0+")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnPartitionResult, "0+"
    )


class AddPartitionsToTxnResult(Struct):
    """Element of `results_by_transaction` in the response."""

    transactional_id: str = string("4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, "4+")


class AddPartitionsToTxnResponse(Response, api_key=24, versions="0-5", flexible="3+"):
    """AddPartitionsToTxn response."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, "0-3"
    )
