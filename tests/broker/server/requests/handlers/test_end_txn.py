"""EndTxn, as a client sees it."""

import pytest

from barnabas_kafka.errors import ErrorCode
from tests.broker.server.running import Wire
from tests.broker.server.transactional import Transactional

READ_COMMITTED = 1


@pytest.fixture
def producer(wire: Wire, topic: str) -> Transactional:
    """One that has written a record in its transaction."""
    made = Transactional(wire, topic)
    made.init()
    assert made.add(topic) == [0]
    assert made.produce(topic, b"v") == 0
    return made


@pytest.mark.parametrize("version", range(5))
def test_a_commit_lets_readers_on(
    wire: Wire, topic: str, producer: Transactional, version: int
) -> None:
    """The record and the marker, nothing aborted; asked again it has still happened."""
    assert wire.fetch(topic, isolation_level=READ_COMMITTED).last_stable_offset == 0
    assert producer.end(commit=True, version=version) == 0
    assert producer.add(topic) == [0]  # Waits for the markers.
    read = wire.fetch(topic, isolation_level=READ_COMMITTED)
    assert (read.last_stable_offset, read.aborted_transactions) == (2, [])
    assert producer.end(commit=False) == 0


def test_aborted_transactions_are_returned_to_consumers(
    wire: Wire, topic: str, producer: Transactional
) -> None:
    """With the producer and the first offset of what they must leave out."""
    assert producer.end(commit=False) == 0
    assert producer.add(topic) == [0]
    read = wire.fetch(topic, isolation_level=READ_COMMITTED)
    assert read.last_stable_offset == 2
    (aborted,) = read.aborted_transactions or []
    assert (aborted.producer_id, aborted.first_offset) == (producer.id, 0)


def test_an_end_can_be_repeated_but_not_changed(producer: Transactional) -> None:
    """Its answer may have been lost."""
    while producer.end(commit=True) == ErrorCode.CONCURRENT_TRANSACTIONS:
        pass
    assert producer.end(commit=False) == ErrorCode.INVALID_TXN_STATE


def test_an_end_gives_the_next_epoch(wire: Wire, topic: str, producer: Transactional) -> None:
    """Under which alone the producer may write from then on; the end can be repeated."""
    before = producer.id, producer.epoch
    answer = producer.bump(commit=True)
    assert (answer.producer_id, answer.producer_epoch) == (before[0], before[1] + 1)
    assert producer.produce(topic, b"next", version=12) == 0
    producer.id, producer.epoch = before
    assert producer.end(commit=True) == ErrorCode.PRODUCER_FENCED
    late = producer.bump(commit=False)
    assert (late.error_code, late.producer_id) == (ErrorCode.PRODUCER_FENCED, -1)
    read = wire.fetch(topic, isolation_level=READ_COMMITTED)
    assert (read.last_stable_offset, read.aborted_transactions) == (2, [])


@pytest.mark.parametrize("version", [1, 2])
def test_a_fenced_producer_gets_its_versions_error(
    wire: Wire, producer: Transactional, version: int
) -> None:
    """In words that its version knows; who gives a wrong id is told that."""
    Transactional(wire, producer.transactional_id).init()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert producer.end(commit=True, version=version) == fenced
    producer.id += 1
    assert producer.end(commit=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer.transactional_id = ""
    assert producer.end(commit=True) == ErrorCode.INVALID_REQUEST
