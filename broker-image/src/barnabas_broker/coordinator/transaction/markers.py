"""Writing the ends of transactions into the partitions that this broker leads.

A marker is a control batch. Where the partition is one of `__consumer_offsets`, the offsets that
groups hold for the transaction are decided with it.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.transaction import EPOCH_PER_TRANSACTION
from barnabas_broker.replica.delayed_produce import ALL_IN_SYNC, Uncounted
from barnabas_broker.replica.partition import Partition
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction,
)


class Marker(NamedTuple):
    """How a producer's transaction has ended, and the epoch of the coordinator that says so.

    `protocol` is the one in which it was ended: in the second one the marker has an epoch above
    that of the records it ends.
    """

    producer: Producer
    commit: bool
    coordinator_epoch: int
    protocol: int = 0


class Ended(Protocol):
    """Called for every marker: the partition ends at `end` now."""

    def __call__(
        self, partition: Partition, producer_id: int, *, committed: bool, end: int
    ) -> None: ...


class Elsewhere(Protocol):
    """Has the leaders of partitions that are not led here write markers."""

    def leader(self, tp: TopicPartition) -> int | None:
        """The other broker that leads a partition; None if this one does, or none."""

    def write(
        self,
        leader: int,
        marker: Marker,
        partitions: Sequence[TopicPartition],
        complete: Callable[[TopicPartition, ErrorCode], None],
    ) -> "asyncio.Future[None]":
        """Call `complete` for each partition, then finish the Future.

        A partition without a call of `complete` may or may not have the marker.
        """


class MarkerWriter:
    """Appends markers to partitions that are led here."""

    def __init__(
        self,
        *,
        leader: Callable[[TopicPartition], Partition],
        ended: Ended,
        clock_ms: Callable[[], int],
    ) -> None:
        """`leader` gives a partition or raises KafkaError; `ended` is called for every marker."""
        self._leader = leader
        self._ended = ended
        self._clock_ms = clock_ms

    def write(
        self,
        tp: TopicPartition,
        marker: Marker,
        complete: Callable[[TopicPartition, ErrorCode], None],
    ) -> Uncounted | None:
        """Append a marker; `complete` is called when it counts, or with the reason why it does not.

        Returns what is to be waited for before that, None if `complete` was called already.
        """
        try:
            partition = self._leader(tp)
            partition.check_in_sync()
            end = self._append(partition, marker)
        except Exception as error:  # The coordinator writes it again, and the others are written.
            complete(tp, refusal(error, "WriteTxnMarkers", tp).code)
            return None
        epoch = partition.leader_epoch
        code = partition.verdict(end, acks=ALL_IN_SYNC, leader_epoch=epoch)
        if code is None:
            return Uncounted(partition, end, epoch, partial(complete, tp))
        complete(tp, code)
        return None

    def _append(self, partition: Partition, marker: Marker) -> int:
        """Returns the partition's end after it."""
        producers = partition.log.producers
        if marker.protocol >= EPOCH_PER_TRANSACTION and producers.has_ongoing_transaction(
            *marker.producer
        ):
            # What is open is the transaction after the one that this marker is for: it was delayed
            # on its way from another broker, and written again meanwhile.
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
        now_ms = self._clock_ms()
        kind = ControlType.COMMIT if marker.commit else ControlType.ABORT
        batch = build_end_transaction(
            EndTransactionMarker(kind, marker.coordinator_epoch),
            producer_id=marker.producer.id,
            producer_epoch=marker.producer.epoch,
            timestamp_ms=now_ms,
        )
        end = partition.append_own(bytearray(batch), now_ms=now_ms).last_offset + 1
        partition.markers += 1
        self._ended(partition, marker.producer.id, committed=marker.commit, end=end)
        return end
