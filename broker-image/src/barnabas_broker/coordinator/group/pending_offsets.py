"""Offsets of a group that are part of open transactions, until these end.

What is written later counts more: an offset that was committed by itself, or in a transaction that
has ended, is not put back by the end of one that wrote before it. Those overtaken stay pending, as
an OffsetFetch with `require_stable` must wait for them all the same (KIP-447), but with nothing to
apply.
"""

from dataclasses import dataclass

from barnabas_broker.coordinator.group.records import CommittedOffset
from barnabas_broker.invariants import violated
from barnabas_kafka.ids import TopicPartition


@dataclass(slots=True)
class _Pending:
    """`number` orders the writes; `committed` is None once it was overtaken."""

    number: int
    committed: CommittedOffset | None


class PendingOffsets:
    """By producer, and then by partition."""

    __slots__ = ("_next", "_of")

    def __init__(self) -> None:
        self._of: dict[int, dict[TopicPartition, _Pending]] = {}
        self._next = 0

    def __bool__(self) -> bool:
        return bool(self._of)

    def __contains__(self, partition: TopicPartition) -> bool:
        return any(partition in pending for pending in self._of.values())

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Those that something is pending for."""
        return frozenset().union(*self._of.values())

    def add(self, producer_id: int, partition: TopicPartition, committed: CommittedOffset) -> None:
        """Remember an offset until the producer's transaction ends."""
        pending = self._of.setdefault(producer_id, {})
        pending[partition] = _Pending(self._next, committed)
        self._next += 1
        assert pending[partition].number < self._next, violated("what is written later counts more")

    def overtake(self, partition: TopicPartition) -> None:
        """Something newer than everything pending was written for a partition."""
        self._overtake(partition, self._next)

    def commit(self, producer_id: int) -> list[tuple[TopicPartition, CommittedOffset]]:
        """The offsets of a committed transaction that count, which are no longer pending."""
        counted = []
        for partition, pending in self._of.pop(producer_id, {}).items():
            assert pending.number < self._next, violated("what is written later counts more")
            if pending.committed is not None:
                counted.append((partition, pending.committed))
                self._overtake(partition, pending.number)
        return counted

    def abort(self, producer_id: int) -> None:
        """Forget the offsets of an aborted transaction."""
        self._of.pop(producer_id, None)

    def _overtake(self, partition: TopicPartition, number: int) -> None:
        for pending in self._of.values():
            each = pending.get(partition)
            if each is not None and each.number < number:
                each.committed = None
        assert number <= self._next, violated("nothing overtakes what is yet to be written")
