"""The producer's side of stored and of new batches."""

from barnabas_broker.log import batches, markers
from barnabas_broker.log.producer_state import EndMarker
from barnabas_kafka.records.batch import parse_header
from tests.broker.log.samples import NOW, batch_of, marker_of


def test_markers_are_read_from_control_batches() -> None:
    """Commit or abort, and the coordinator's epoch."""
    assert markers.end_marker(marker_of(9, 0, commit=True, coordinator_epoch=5)) == (
        EndMarker(commit=True, coordinator_epoch=5)
    )
    assert markers.end_marker(marker_of(9, 0, commit=False)) == EndMarker(
        commit=False, coordinator_epoch=0
    )


def test_new_and_stored_batches_say_the_same() -> None:
    """A follower's and a restarted broker's state equals the leader's."""
    data = batch_of(3, offset=40, producer=(9, 1, 2**31 - 2), transactional=True)
    new = markers.new_producer_batch(parse_header(data), 40, data)
    stored = markers.stored_producer_batch(batches.parse(data, 0, 0), data)
    assert new == stored
    assert (new.first_sequence, new.last_sequence) == (2**31 - 2, 0)
    assert (new.first_offset, new.last_offset, new.timestamp) == (40, 42, NOW + 2)


def test_control_batches_carry_their_marker() -> None:
    """Without the bytes the marker stays unknown."""
    data = marker_of(9, 1, commit=True)
    stored = batches.parse(data, 0, 0)
    assert markers.stored_producer_batch(stored, data).marker == EndMarker(True, 0)
    assert markers.stored_producer_batch(stored, None).marker is None
