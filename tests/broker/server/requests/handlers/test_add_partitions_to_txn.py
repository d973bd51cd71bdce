"""AddPartitionsToTxn, as clients and brokers see it."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.broker.server.running import Wire
from tests.broker.server.transactional import Transactional


@pytest.fixture
def producer(wire: Wire, topic: str) -> Transactional:
    """One that has begun."""
    made = Transactional(wire, topic)
    made.init()
    return made


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_all_or_none(
    topic: str, producer: Transactional, version: int
) -> None:
    """One that does not exist keeps the other out; twice is no harm."""
    assert producer.add(topic, 0, 9, version=version) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert producer.produce(topic, b"v") == ErrorCode.INVALID_TXN_STATE
    assert producer.add(topic, version=version) == [0]
    assert producer.add(topic, version=version) == [0]
    assert producer.produce(topic, b"v") == 0


def test_internal_topics_are_not_for_clients(producer: Transactional) -> None:
    """Offsets are added with a request of their own."""
    assert producer.add("__transaction_state") == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.parametrize("version", [1, 2])
def test_a_fenced_producer_gets_its_versions_error(
    wire: Wire, topic: str, producer: Transactional, version: int
) -> None:
    """In words that its version knows."""
    Transactional(wire, topic).init()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert producer.add(topic, version=version) == [fenced]


def verified(wire: Wire, producer: Transactional, *partitions: TopicPartition) -> list[int]:
    """What a broker is told about a transaction."""
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=producer.transactional_id,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                verify_only=True,
                topics=[
                    AddPartitionsToTxnTopic(name=topic, partitions=[index])
                    for topic, index in partitions
                ],
            )
        ]
    )
    (result,) = wire.ask(request, 4).results_by_transaction
    return [
        each.partition_error_code
        for topic in result.topic_results
        for each in topic.results_by_partition
    ]


def test_brokers_verify(wire: Wire, topic: str, producer: Transactional) -> None:
    """For every partition whether it is part of the open transaction; nothing is added."""
    wire.create_topic(f"{topic}-other")
    producer.add(topic)
    asked = (TopicPartition(topic, 0), TopicPartition(f"{topic}-other", 0))
    assert verified(wire, producer, *asked) == [0, ErrorCode.INVALID_TXN_STATE]
    producer.epoch += 1
    assert verified(wire, producer, *asked) == [ErrorCode.PRODUCER_FENCED] * 2
