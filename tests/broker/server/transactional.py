"""A transactional producer that speaks raw requests, for tests of what the broker answers."""

from collections.abc import Callable
from typing import Any

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas_kafka.protocol.messages.end_txn import EndTxnRequest
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas_kafka.protocol.messages.produce import ProduceRequest
from barnabas_kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, produce_request
from tests.waiting import wait_for

TRY_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


class Transactional:
    """One producer; `id` and `epoch` are what InitProducerId gave it."""

    def __init__(self, wire: Wire, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        self.wire = wire
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}
        wire.ask(FindCoordinatorRequest(key=transactional_id, key_type=1), 3)

    def init(self, version: int = 4, **fields: Any) -> Any:
        """InitProducerId, asked again while the coordinator says so."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            **fields,
        )
        answer = self._ask_again(request, version, lambda it: [it.error_code])
        if not answer.error_code:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences = {}
        return answer

    def add(self, topic: str, *partitions: int, version: int = 3) -> list[int]:
        """AddPartitionsToTxn, asked again; the code of each partition."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=list(partitions or (0,)))
            ],
        )

        def codes(answer: Any) -> list[int]:
            (result,) = answer.results_by_topic_v3_and_below
            return [each.partition_error_code for each in result.results_by_partition]

        return codes(self._ask_again(request, version, codes))

    def _ask_again(self, request: Message, version: int, codes: Callable[[Any], list[int]]) -> Any:
        """The first answer of which no code asks for another attempt."""
        return wait_for(
            f"an answer to {type(request).__name__} other than a retriable error",
            lambda: self.wire.ask(request, version),
            until=lambda answer: not set(codes(answer)) & set(TRY_AGAIN),
        )

    def produce(self, topic: str, *values: bytes, partition: int = 0, version: int = 9) -> int:
        """One batch; the error code."""
        sequence = self._sequences.get((topic, partition), 0)
        batch = build_batch(
            [(1, None, value, ()) for value in values],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request: ProduceRequest = produce_request(topic, batch, partition=partition)
        request.transactional_id = self.transactional_id
        answer = self.wire.ask(request, version).responses[0].partition_responses[0]
        if not answer.error_code:
            self._sequences[topic, partition] = sequence + len(values)
        return int(answer.error_code)

    def skip(self, topic: str, *, partition: int = 0) -> None:
        """Go on as if a batch of one record had been sent."""
        self._sequences[topic, partition] = self._sequences.get((topic, partition), 0) + 1

    def end(self, *, commit: bool, version: int = 3) -> int:
        """EndTxn; the error code."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return int(self.wire.ask(request, version).error_code)

    def bump(self, *, commit: bool) -> Any:
        """EndTxn in protocol 2, asked again; goes on with the epoch that it gives."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = self._ask_again(request, 5, lambda it: [it.error_code])
        if not answer.error_code:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences = {}
        return answer

    def add_offsets(self, group: str, version: int = 3) -> int:
        """AddOffsetsToTxn; the error code."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return int(self.wire.ask(request, version).error_code)

    def commit_offset(self, group: str, topic: str, offset: int, version: int = 3) -> int:
        """TxnOffsetCommit of partition 0; the error code."""
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        return int(self.wire.ask(request, version).topics[0].partitions[0].error_code)
