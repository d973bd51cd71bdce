"""The records of __transaction_state, byte for byte."""

from dataclasses import replace

import pytest

from barnabas_broker.coordinator.transaction.records import KIND, TAGGED, TransactionRecord
from barnabas_broker.coordinator.transaction.states import TransactionState
from barnabas_broker.coordinator.transaction.transaction import Transaction
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.codec import DecodeError

KEY = "0000 0002 7478"
ONGOING_VALUE = (
    "0000 0000000000000007 0002 0000ea60 01 00000002"
    "0001 73 00000001 00000000 0001 74 00000002 00000000 00000001"
    "0000000000000005 0000000000000003"
)
EMPTY = Transaction(id="tx", producer_id=7, epoch=2, timeout_ms=60_000, updated_ms=5)
ONGOING = Transaction(
    id="tx",
    producer_id=7,
    epoch=2,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({TopicPartition("t", 1), TopicPartition("t", 0), TopicPartition("s", 0)}),
    started_ms=3,
    updated_ms=5,
)


@pytest.mark.parametrize(
    ("transaction", "value"),
    [
        (
            EMPTY,
            "0000 0000000000000007 0002 0000ea60 00 ffffffff 0000000000000005 ffffffffffffffff",
        ),
        (
            ONGOING,
            ONGOING_VALUE,
        ),
        (None, None),
    ],
)
def test_records_have_kafkas_bytes(transaction: Transaction | None, value: str | None) -> None:
    """In the version that every Kafka reads, and back."""
    record = TransactionRecord("tx", transaction)
    encoded = KIND.encode(record)
    assert encoded == (bytes.fromhex(KEY), None if value is None else bytes.fromhex(value))
    assert KIND.decode(*encoded) == record


TAGGED_EMPTY = "0001 0000000000000007 0002 0000ea60 00 00 0000000000000005 ffffffffffffffff"
TAGGED_ONGOING = (
    "0001 0000000000000007 0002 0000ea60 01 03 02 73 02 00000000 00 02 74 03 00000000 00000001 00"
    "0000000000000005 0000000000000003"
)


@pytest.mark.parametrize(
    ("transaction", "value"),
    [
        (EMPTY, f"{TAGGED_EMPTY} 00"),
        (replace(EMPTY, protocol=2), f"{TAGGED_EMPTY} 01 02 02 0002"),
        (replace(EMPTY, previous_id=6), f"{TAGGED_EMPTY} 01 00 08 0000000000000006"),
        (replace(ONGOING, protocol=2), f"{TAGGED_ONGOING} 01 02 02 0002"),
        (
            replace(ONGOING, next_id=8, protocol=2),
            f"{TAGGED_ONGOING} 02 01 08 0000000000000008 02 02 0002",
        ),
    ],
)
def test_tagged_records_say_what_the_second_protocol_needs(
    transaction: Transaction, value: str
) -> None:
    """The protocol of the client, and at the end of an id's epochs its neighbours."""
    record = TransactionRecord("tx", transaction, TAGGED)
    encoded = KIND.encode(record)
    assert encoded == (bytes.fromhex(KEY), bytes.fromhex(value))
    assert KIND.decode(*encoded) == record


def test_value_version_1_is_read() -> None:
    """Value version 1 is flexible; it names the id before."""
    value = (
        "0001 0000000000000007 0002 0000ea60 04 01 0000000000000005 0000000000000003"
        "01 00 08 0000000000000006"
    )
    record = KIND.decode(bytes.fromhex(KEY), bytes.fromhex(value))
    assert record is not None
    assert record.transaction is not None
    assert record.transaction.state is TransactionState.COMPLETE_COMMIT


def test_foreign_keys_are_skipped_and_invalid_states_are_errors() -> None:
    """Another kind of key is skipped; a state that is unknown, or never written, is an error."""
    assert KIND.decode(b"\0\x05", b"") is None
    _, value = KIND.encode(TransactionRecord("tx", EMPTY))
    assert value is not None
    for state in (9, 7):
        with pytest.raises(DecodeError, match=f"no state {state}"):
            KIND.decode(bytes.fromhex(KEY), value[:16] + bytes([state]) + value[17:])


def test_nothing_is_written_in_transactions_here() -> None:
    """A batch that says so is not ours."""
    record = TransactionRecord("tx", EMPTY)
    assert KIND.in_transaction(1, record) is None  # type: ignore[func-returns-value]
    assert KIND.ended(1, committed=True) is None  # type: ignore[func-returns-value]
