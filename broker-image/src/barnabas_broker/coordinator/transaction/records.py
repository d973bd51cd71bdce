"""What is written to `__transaction_state`, as values and as the bytes of keys and values.

Value version 0 is what every Kafka reads. Version 1, which Kafka 3.8 and later read, says more of
transactions in protocol 2, and is written where that is in force. Of its own accord Kafka 4.1
writes only the protocol there; which producer id comes next, and which was before, are written
here in the one case where that matters: when the epochs of an id are used up. The partitions of an
id that has just been initialised are null, of any other a list, as Kafka has it.
"""

from collections import defaultdict
from dataclasses import dataclass

from barnabas_broker.coordinator.transaction.states import BY_NUMBER, NUMBERS, TransactionState
from barnabas_broker.coordinator.transaction.transaction import Transaction
from barnabas_kafka.ids import NO_PRODUCER_ID, TopicPartition
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.embedded import (
    TRANSACTION_LOG_KEY,
    TransactionLogKey,
    TransactionLogPartitions,
    TransactionLogValue,
    pack,
    unpack,
    version_of,
)

PLAIN = 0
TAGGED = 1


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """What becomes of a transactional id, None when it is forgotten."""

    transactional_id: str
    transaction: Transaction | None
    value_version: int = PLAIN


class TransactionKind:
    """How records of `__transaction_state` look in the log."""

    def encode(self, record: TransactionRecord) -> tuple[bytes, bytes | None]:
        """The key and the value of a record."""
        key = pack(TransactionLogKey(transactional_id=record.transactional_id), TRANSACTION_LOG_KEY)
        it = record.transaction
        return key, None if it is None else pack(_value(it), record.value_version)

    def decode(self, key: bytes, value: bytes | None) -> TransactionRecord | None:
        """The record; None for kinds that are not known here; raises DecodeError."""
        if version_of(key) != TRANSACTION_LOG_KEY:
            return None
        transactional_id = unpack(TransactionLogKey, key).transactional_id
        if value is None:
            return TransactionRecord(transactional_id, None)
        transaction = _transaction(transactional_id, value)
        return TransactionRecord(transactional_id, transaction, version_of(value))

    def in_transaction(self, producer_id: int, record: TransactionRecord) -> None:
        """Nothing is written here in a transaction."""

    def ended(self, producer_id: int, *, committed: bool) -> None:
        """Nothing is written here in a transaction."""


KIND = TransactionKind()


def _value(it: Transaction) -> TransactionLogValue:
    partitions: list[TransactionLogPartitions] | None = None
    if it.state is not TransactionState.EMPTY:
        indexes = defaultdict(list)
        for topic, index in sorted(it.partitions):
            indexes[topic].append(index)
        partitions = [
            TransactionLogPartitions(topic=topic, partition_ids=of_topic)
            for topic, of_topic in indexes.items()
        ]
    return TransactionLogValue(
        producer_id=it.producer_id,
        producer_epoch=it.epoch,
        transaction_timeout_ms=it.timeout_ms,
        transaction_status=NUMBERS[it.state],
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=it.updated_ms,
        transaction_start_timestamp_ms=it.started_ms,
        previous_producer_id=NO_PRODUCER_ID if it.previous_id == it.producer_id else it.previous_id,
        next_producer_id=it.next_id,
        client_transaction_version=it.protocol,
    )


def _transaction(transactional_id: str, data: bytes) -> Transaction:
    value = unpack(TransactionLogValue, data)
    state = BY_NUMBER.get(value.transaction_status)
    if state is None or state is TransactionState.PREPARE_EPOCH_FENCE:  # Never written.
        raise DecodeError(f"a transaction has no state {value.transaction_status}")
    return Transaction(
        id=transactional_id,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(each.topic, index)
            for each in value.transaction_partitions or []
            for index in each.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        previous_id=value.previous_producer_id,
        next_id=value.next_producer_id,
        protocol=value.client_transaction_version,
    )
