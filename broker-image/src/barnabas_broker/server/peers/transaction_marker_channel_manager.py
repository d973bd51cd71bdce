"""Transactions across brokers: what a coordinator and the leaders of partitions ask each other.

A coordinator has the leaders write its markers (WriteTxnMarkers); a leader asks the coordinator
whether a partition is part of a transaction, or has it made so (AddPartitionsToTxn from version 4
on, KIP-890). Between the answer and the append a transaction may end: an answer counts only while
the partition has seen no marker and has the same leader epoch since it was asked for.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas_broker.cluster.image import NO_LEADER, MetadataImage
from barnabas_broker.coordinator.hashing import partition_of
from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.markers import Marker
from barnabas_broker.coordinator.transaction.transaction_coordinator import TRANSACTIONS_TOPIC
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.peers.peers import PeerError, Peers, UnsupportedError
from barnabas_broker.server.peers.replication.leader_end_point import error_code
from barnabas_broker.server.peers.request_batcher import RequestBatcher
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.codec import EncodeError
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas_kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_kafka.protocol.registry import ApiKey

log = logging.getLogger(__name__)

MARKERS_TIMEOUT_S: Final = 35.0
"""A leader answers in 30 s (`request.timeout.ms`), if only with what has not been replicated."""

ASKING_TIMEOUT_S: Final = 10.0

FIRST_WITH_VERIFICATION: Final = 4

KEPT_MAX: Final = 10_000
"""Unclaimed answers to keep; the oldest go first, and are asked for again."""

OnMarkerWritten = Callable[[TopicPartition, ErrorCode], None]
Codes = Mapping[TopicPartition, ErrorCode]


class Guard(NamedTuple):
    """What must be as it was for an answer about a partition to count."""

    leader_epoch: int
    markers: int

    @classmethod
    def of(cls, partition: Partition) -> "Guard":
        """As it is now."""
        return cls(partition.leader_epoch, partition.markers)


class TransactionMarkerChannelManager:
    """The other brokers, as far as transactions need them. Lives on the event loop."""

    def __init__(
        self, broker_id: int, *, image: Callable[[], MetadataImage], markers: Peers, asking: Peers
    ) -> None:
        self._broker_id = broker_id
        self._image = image
        self._markers = markers
        self._asking = asking
        self._marks = RequestBatcher(self._send_markers)
        self._asks = RequestBatcher(self._send_asks)
        self._kept: dict[tuple[TopicPartition, Producer], tuple[Guard, ErrorCode]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Ask nothing any more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._marks.stop()
        await self._asks.stop()
        self._markers.close()
        self._asking.close()

    # --- markers

    def leader(self, tp: TopicPartition) -> int | None:
        """The other broker that leads a partition; None if this one does, or none."""
        state = self._image().partition(tp)
        return None if state is None else self._other(state.leader)

    def write(
        self,
        leader: int,
        marker: Marker,
        partitions: Sequence[TopicPartition],
        on_written: OnMarkerWritten,
    ) -> "asyncio.Future[None]":
        """Have a leader write a marker: call `on_written` per partition, then finish the Future.

        A partition without a call of `on_written` may or may not have the marker.
        """
        task = background().once(
            "writing markers", self._write(leader, marker, partitions, on_written)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _write(
        self,
        leader: int,
        marker: Marker,
        partitions: Sequence[TopicPartition],
        on_written: OnMarkerWritten,
    ) -> None:
        topics: dict[str, WritableTxnMarkerTopic] = {}
        for tp in partitions:
            topic = topics.setdefault(tp.topic, WritableTxnMarkerTopic(name=tp.topic))
            topic.partition_indexes.append(tp.partition)
        asked = WritableTxnMarker(
            producer_id=marker.producer.id,
            producer_epoch=marker.producer.epoch,
            transaction_result=marker.commit,
            topics=list(topics.values()),
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.protocol,
        )
        codes: Codes = {}
        try:
            codes = await self._marks.ask(leader, marker.producer.id, asked)
        except (PeerError, EncodeError) as error:
            log.warning(
                "Failed to write transaction markers: producer_id=%d %s", marker.producer.id, error
            )
        for tp in partitions:
            # Whatever the leader does not answer for counts as not written.
            on_written(tp, codes.get(tp, ErrorCode.NETWORK_EXCEPTION))

    async def _send_markers(
        self, leader: int, markers: Mapping[int, WritableTxnMarker]
    ) -> Mapping[int, Codes]:
        """The leader's result for the markers of each producer; some may be missing."""
        answer = await self._markers.send(
            leader,
            WriteTxnMarkersRequest(markers=list(markers.values())),
            WriteTxnMarkersResponse,
            timeout_s=MARKERS_TIMEOUT_S,
        )
        by_producer: dict[int, dict[TopicPartition, ErrorCode]] = {
            producer: {} for producer in markers
        }
        for result in answer.markers:
            codes = by_producer.setdefault(result.producer_id, {})
            for of_topic in result.topics:
                for each in of_topic.partitions:
                    tp = TopicPartition(of_topic.name, each.partition_index)
                    codes[tp] = error_code(each.error_code)
        return by_producer

    # --- what leaders ask coordinators

    def coordinator(self, transactional_id: str) -> int | None:
        """The other broker that coordinates an id; None if this one does, or none."""
        topic = self._image().topic(TRANSACTIONS_TOPIC)
        if topic is None:
            return None
        return self._other(
            topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader
        )

    def _other(self, leader: int) -> int | None:
        return None if leader in (NO_LEADER, self._broker_id) else leader

    def kept(self, partition: Partition, producer: Producer) -> ErrorCode | None:
        """The coordinator's answer about a partition; None if it is to be asked.

        A refusal is returned once: what was refused may be right when it is tried again.
        """
        key = partition.tp, producer
        guard, code = self._kept.get(key, (None, ErrorCode.NONE))
        if guard is not None and (code or guard != Guard.of(partition)):
            del self._kept[key]
        return code if guard == Guard.of(partition) else None

    async def ask(
        self,
        coordinator: int,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[Partition],
        *,
        verify_only: bool,
    ) -> Codes:
        """Verify that partitions are part of a transaction, or make them so.

        What is answered is kept for the append that follows.
        """
        guards = {partition.tp: Guard.of(partition) for partition in partitions}
        codes = await self._asked(
            coordinator, transactional_id, producer, list(guards), verify_only=verify_only
        )
        for tp, guard in guards.items():
            while len(self._kept) >= KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[tp, producer] = guard, codes[tp]
        return codes

    async def _asked(
        self,
        coordinator: int,
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[TopicPartition],
        *,
        verify_only: bool,
    ) -> dict[TopicPartition, ErrorCode]:
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for tp in partitions:
            topic = topics.setdefault(tp.topic, AddPartitionsToTxnTopic(name=tp.topic))
            topic.partitions.append(tp.partition)
        asked = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=list(topics.values()),
        )
        try:
            whole, codes = await self._asks.ask(coordinator, transactional_id, asked)
        except UnsupportedError:
            # An older broker: its producers are trusted, as they were before.
            return dict.fromkeys(partitions, ErrorCode.NONE)
        except (PeerError, EncodeError) as error:
            log.info("AddPartitionsToTxn failed: transactional.id=%a %s", transactional_id, error)
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return {tp: codes.get(tp, whole) for tp in partitions}

    async def _send_asks(
        self, coordinator: int, asked: Mapping[str, AddPartitionsToTxnTransaction]
    ) -> Mapping[str, tuple[ErrorCode, Codes]]:
        """What a coordinator says of each transaction: of the partitions, and of all others."""
        version = await self._asking.version(
            coordinator, ApiKey.ADD_PARTITIONS_TO_TXN, timeout_s=ASKING_TIMEOUT_S
        )
        if version < FIRST_WITH_VERIFICATION:
            raise UnsupportedError("the coordinator verifies nothing")
        answer = await self._asking.send(
            coordinator,
            AddPartitionsToTxnRequest(transactions=list(asked.values())),
            AddPartitionsToTxnResponse,
            timeout_s=ASKING_TIMEOUT_S,
        )
        whole = error_code(answer.error_code) or ErrorCode.COORDINATOR_NOT_AVAILABLE
        by_id: dict[str, dict[TopicPartition, ErrorCode]] = {id_: {} for id_ in asked}
        for result in answer.results_by_transaction:
            codes = by_id.setdefault(result.transactional_id, {})
            for of_topic in result.topic_results:
                for each in of_topic.results_by_partition:
                    tp = TopicPartition(of_topic.name, each.partition_index)
                    codes[tp] = error_code(each.partition_error_code)
        return {id_: (whole, codes) for id_, codes in by_id.items()}
