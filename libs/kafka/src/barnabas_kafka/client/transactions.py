"""Operations on transactions: list and describe them, and the producers of partitions."""

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas_kafka.client.cluster import CoordinatorOf, CoordinatorType, LeaderOf, OneBroker
from barnabas_kafka.client.errors import check
from barnabas_kafka.client.operation import (
    Ask,
    Operation,
    Outcomes,
    Results,
    every,
    outcome,
    unique,
)
from barnabas_kafka.client.partitions import by_topic
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas_kafka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id of one coordinator."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id with its open transaction; `started_ms` is -1 where there is none."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ProducerState:
    """An idempotent producer as a partition knows it; -1 is none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


def list_transactions(
    *, states: Iterable[str] = (), producer_ids: Iterable[int] = ()
) -> Operation[Results[int, tuple[TransactionListing, ...]]]:
    """The transactional ids, by the broker that coordinates them. Needs Kafka 3.0."""
    wanted, ids = list(states), list(producer_ids)

    def read(
        ask: Ask[int], response: ListTransactionsResponse
    ) -> Outcomes[int, tuple[TransactionListing, ...]]:
        check(response.error_code)
        listed = (
            TransactionListing(each.transactional_id, each.producer_id, each.transaction_state)
            for each in response.transaction_states
        )
        return {ask.broker: tuple(listed)}

    return Operation(
        name="list transactions",
        keys=None,
        target=OneBroker,
        request=lambda _: ListTransactionsRequest(state_filters=wanted, producer_id_filters=ids),
        api_key=ApiKey.LIST_TRANSACTIONS,
        read=read,
        finish=every,
    )


def describe_transactions(
    transactional_ids: Iterable[str],
) -> Operation[Results[str, TransactionDescription]]:
    """Transactional ids with their open transactions. Needs Kafka 3.0."""

    def read(
        ask: Ask[str], response: DescribeTransactionsResponse
    ) -> Outcomes[str, TransactionDescription]:
        return {
            each.transactional_id: outcome(
                each.error_code,
                None,
                TransactionDescription(
                    transactional_id=each.transactional_id,
                    state=each.transaction_state,
                    producer_id=each.producer_id,
                    producer_epoch=each.producer_epoch,
                    timeout_ms=each.transaction_timeout_ms,
                    started_ms=each.transaction_start_time_ms,
                    partitions=tuple(
                        TopicPartition(topic.topic, partition)
                        for topic in each.topics
                        for partition in topic.partitions
                    ),
                ),
            )
            for each in response.transaction_states
        }

    return Operation(
        name="describe transactions",
        keys=unique(transactional_ids),
        target=lambda key: CoordinatorOf(CoordinatorType.TRANSACTION, key),
        request=lambda ask: DescribeTransactionsRequest(transactional_ids=list(ask.keys)),
        api_key=ApiKey.DESCRIBE_TRANSACTIONS,
        read=read,
        finish=every,
    )


def describe_producers(
    partitions: Iterable[TopicPartition],
) -> Operation[Results[TopicPartition, tuple[ProducerState, ...]]]:
    """The producers that the leaders of these partitions know. Needs Kafka 2.8."""

    def request(ask: Ask[TopicPartition]) -> DescribeProducersRequest:
        return DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=[each.partition for each in members])
                for topic, members in by_topic(ask.keys)
            ]
        )

    def read(
        ask: Ask[TopicPartition], response: DescribeProducersResponse
    ) -> Outcomes[TopicPartition, tuple[ProducerState, ...]]:
        return {
            TopicPartition(topic.name, each.partition_index): outcome(
                each.error_code,
                each.error_message,
                tuple(
                    ProducerState(
                        producer.producer_id,
                        producer.producer_epoch,
                        producer.last_sequence,
                        producer.last_timestamp,
                        producer.coordinator_epoch,
                        producer.current_txn_start_offset,
                    )
                    for producer in each.active_producers
                ),
            )
            for topic in response.topics
            for each in topic.partitions
        }

    return Operation(
        name="describe producers",
        keys=unique(partitions),
        target=LeaderOf,
        request=request,
        api_key=ApiKey.DESCRIBE_PRODUCERS,
        read=read,
        finish=every,
    )
