"""Offsets in open transactions: what their ends make of them."""

from barnabas_broker.coordinator.group.pending_offsets import PendingOffsets
from barnabas_broker.coordinator.group.records import CommittedOffset
from barnabas_kafka.ids import TopicPartition

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def at(offset: int) -> CommittedOffset:
    """A committed offset."""
    return CommittedOffset(offset=offset, commit_timestamp=1)


def test_a_commit_gives_what_was_pending() -> None:
    """The last of each partition, once."""
    pending = PendingOffsets()
    pending.add(7, T0, at(1))
    pending.add(7, T0, at(2))
    pending.add(7, T1, at(3))
    assert T0 in pending
    assert pending.partitions == {T0, T1}
    assert pending.commit(7) == [(T0, at(2)), (T1, at(3))]
    assert pending.commit(7) == []
    assert not pending
    assert T0 not in pending


def test_an_abort_gives_nothing() -> None:
    """And leaves other producers' offsets alone."""
    pending = PendingOffsets()
    pending.add(7, T0, at(1))
    pending.add(8, T1, at(2))
    pending.abort(7)
    assert pending.commit(7) == []
    assert pending.commit(8) == [(T1, at(2))]


def test_a_later_commit_is_not_overwritten_by_a_marker() -> None:
    """By a plain commit or by the end of another transaction; they stay pending until then."""
    pending = PendingOffsets()
    pending.add(7, T0, at(1))
    pending.overtake(T0)
    assert T0 in pending
    assert pending.commit(7) == []
    pending.add(7, T0, at(1))
    pending.add(8, T0, at(2))
    assert pending.commit(8) == [(T0, at(2))]
    assert pending.commit(7) == []


def test_an_older_end_does_not_hide_a_newer_one() -> None:
    """In the order in which they were written."""
    pending = PendingOffsets()
    pending.add(7, T0, at(1))
    pending.add(8, T0, at(2))
    assert pending.commit(7) == [(T0, at(1))]
    assert pending.commit(8) == [(T0, at(2))]
