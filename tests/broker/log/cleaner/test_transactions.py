"""What a cleaning may drop of transactions."""

from barnabas_broker.log.batches import StoredBatch
from barnabas_broker.log.cleaner.transactions import CleanedTransactions
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.records.control import ControlType

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def batch(offset: int, producer: int, *, control: bool = False) -> StoredBatch:
    attributes = 0x30 if control else 0x10
    return StoredBatch(0, 70, offset, offset, 2, 0, 0, 0, attributes, producer, 0, 0, 1, 0)


def test_a_transcript() -> None:
    """Producers 1 (commits) and 2 (aborts) interleave; then 2 commits."""
    aborted = AbortedTransaction(2, 11, 13, 14)
    cleaned = CleanedTransactions([aborted])
    assert not cleaned.batch_read(batch(10, 1))
    assert cleaned.batch_read(batch(11, 2)), "its records go"
    assert not cleaned.marker_read(batch(12, 1, control=True), COMMIT, empty=False)
    assert not cleaned.marker_read(batch(13, 2, control=True), ABORT, empty=False)
    assert cleaned.kept == [aborted], "the new index knows it while the marker stays"
    assert not cleaned.batch_read(batch(14, 2)), "its next transaction is another matter"
    assert not cleaned.marker_read(batch(15, 2, control=True), COMMIT, empty=False)


def test_a_marker_without_records_is_not_needed() -> None:
    """An earlier cleaning took the records: the marker may follow."""
    cleaned = CleanedTransactions([AbortedTransaction(2, 3, 6, 7)])
    assert cleaned.marker_read(batch(5, 1, control=True), COMMIT, empty=False)
    assert cleaned.marker_read(batch(6, 2, control=True), ABORT, empty=False)
    assert cleaned.kept == []


def test_markers_of_other_kinds_and_empty_ones() -> None:
    """Nobody knows what an unknown control record is for, so it stays; an emptied one may go."""
    cleaned = CleanedTransactions([])
    assert not cleaned.marker_read(batch(1, 1, control=True), None, empty=False)
    assert cleaned.marker_read(batch(2, 1, control=True), None, empty=True)


def test_batches_outside_of_transactions() -> None:
    """Idempotent batches between those of a transaction are not part of it."""
    cleaned = CleanedTransactions([AbortedTransaction(2, 0, 6, 7)])
    assert not cleaned.batch_read(batch(1, 2)._replace(attributes=0))
