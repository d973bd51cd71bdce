"""InitProducerId (key 22): gives a producer its id and epoch.

Versions:
   1: the client does the waiting of a throttle.
   2: flexible.
   3: a producer may ask to bump its epoch (KIP-360); request adds producer_id, producer_epoch.
   4: PRODUCER_FENCED may be answered.
   5: TRANSACTION_ABORTABLE may be answered.
   6: two-phase commit (KIP-939); request adds enable2_pc, keep_prepared_txn; response adds
      ongoing_txn_producer_id, ongoing_txn_producer_epoch.
"""

from barnabas_kafka.protocol.schema import Request, Response, boolean, int16, int32, int64, string


class InitProducerIdRequest(Request, api_key=22, versions="0-6", flexible="2+"):
    """InitProducerId request."""

    transactional_id: str | None = string("0+", nullable="0+")
    transaction_timeout_ms: int = int32("0+")
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


class InitProducerIdResponse(Response, api_key=22, versions="0-6", flexible="2+"):
    """InitProducerId response."""

    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    producer_id: int = int64("0+", default=-1)
    producer_epoch: int = int16("0+")
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
