"""Batches before they are written."""

import pytest

from barnabas_broker.log import appending
from barnabas_broker.log.producer_state import Origin, ProducerState
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.records import batch as record_batches
from tests.broker.log.samples import NOW, TP, batch_of, validated


def test_stamps_leave_the_checksum_right() -> None:
    """Offset and epoch lie outside it."""
    batches = validated(batch_of(2) + batch_of(3, producer=(9, 0, 0)))
    appended, sequenced = appending.stamp_batches(batches, 100, 7)
    found = list(record_batches.headers(batches.buffer))
    for position, header in found:
        record_batches.verify_crc(batches.buffer, position, header)
    assert [(header.base_offset, header.leader_epoch) for _, header in found] == [
        (100, 7),
        (102, 7),
    ]
    assert [(last, timestamp) for _, last, timestamp in appended] == [
        (101, NOW + 1),
        (104, NOW + 2),
    ]
    assert [batch.first_offset for batch in sequenced] == [102]


def test_the_first_known_batch_is_the_duplicate() -> None:
    """One is enough: a producer sends a request again as a whole."""
    state = ProducerState()
    _, sent = appending.stamp_batches(validated(batch_of(2, producer=(9, 0, 0))), 10, 0)
    assert appending.find_duplicate(state, sent) is None
    state.commit(state.check(sent, Origin.CLIENT), 12)
    original = appending.find_duplicate(state, sent)
    assert original is not None
    assert original.first_offset == 10


def test_a_leaders_batches_must_continue_the_log() -> None:
    """Offsets may jump, never go back."""
    view = memoryview(batch_of(2, offset=5) + batch_of(2, offset=20))
    found = appending.whole_batches(view, TP, 5)
    assert [batch.base_offset for batch in found] == [5, 20]
    with pytest.raises(KafkaError) as caught:
        appending.whole_batches(view, TP, 6)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    appended, sequenced = appending.as_stored(found, view)
    assert [last for _, last, _ in appended] == [6, 21]
    assert sequenced == []
