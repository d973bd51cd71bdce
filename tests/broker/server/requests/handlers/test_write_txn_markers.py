"""WriteTxnMarkers, as brokers and administrators see it."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.server.running import Wire
from tests.broker.server.transactional import Transactional

READ_COMMITTED = 1


def marker(
    topic: str, producer: Transactional, *, partition: int = 0, coordinator_epoch: int = 0
) -> WriteTxnMarkersRequest:
    """An abort."""
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                transaction_result=False,
                coordinator_epoch=coordinator_epoch,
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
            )
        ]
    )


@pytest.fixture
def producer(wire: Wire, topic: str) -> Transactional:
    """One with a record in an open transaction."""
    made = Transactional(wire, topic)
    made.init()
    made.add(topic)
    assert made.produce(topic, b"v") == 0
    return made


def code_of(wire: Wire, request: WriteTxnMarkersRequest, version: int = 1) -> int:
    """The answer for its only partition."""
    return int(wire.ask(request, version).markers[0].topics[0].partitions[0].error_code)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_marker_ends_what_hangs(
    wire: Wire, topic: str, producer: Transactional, version: int
) -> None:
    """Readers go on, and leave the records out."""
    assert code_of(wire, marker(topic, producer), version) == 0
    read = wire.fetch(topic, isolation_level=READ_COMMITTED)
    assert read.last_stable_offset == 2
    assert [each.producer_id for each in read.aborted_transactions or []] == [producer.id]


def test_an_older_coordinator_is_fenced(wire: Wire, topic: str, producer: Transactional) -> None:
    """It has lost its office and does not know."""
    assert code_of(wire, marker(topic, producer, coordinator_epoch=5)) == 0
    again = marker(topic, producer, coordinator_epoch=4)
    assert code_of(wire, again) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_delayed_marker_of_the_second_protocol_ends_nothing(wire: Wire, topic: str) -> None:
    """It has the epoch of the transaction after its own, and says in which protocol it is."""
    producer = Transactional(wire, topic)
    producer.init()
    assert producer.produce(topic, b"first", version=12) == 0
    assert producer.bump(commit=True).error_code == 0
    assert producer.produce(topic, b"second", version=12) == 0
    late = marker(topic, producer)
    late.markers[0].transaction_version = 2
    assert code_of(wire, late, 2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert wire.fetch(topic, isolation_level=READ_COMMITTED).last_stable_offset == 2
    assert producer.bump(commit=True).error_code == 0


def test_an_older_epoch_is_refused(wire: Wire, topic: str, producer: Transactional) -> None:
    """The marker of a past transaction cannot end the present one."""
    producer.epoch -= 1
    assert code_of(wire, marker(topic, producer)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_partitions_that_are_not_here_are_named(
    wire: Wire, topic: str, producer: Transactional
) -> None:
    """Each has its own answer."""
    code = code_of(wire, marker(topic, producer, partition=9))
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
