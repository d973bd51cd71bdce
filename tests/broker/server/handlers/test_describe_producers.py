"""DescribeProducers, as a client sees it."""

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from tests.broker.server.running import Wire
from tests.broker.server.transactional import Transactional


def test_producers_are_told_with_their_transaction(wire: Wire, topic: str) -> None:
    """Where it begins, -1 when none is open; partitions that are not here have an error."""
    producer = Transactional(wire, topic)
    producer.init()
    producer.add(topic)
    producer.produce(topic, b"a", b"b")
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0, 9])])
    here, missing = wire.ask(request, 0).topics[0].partitions
    (told,) = here.active_producers
    assert (told.producer_id, told.producer_epoch, told.last_sequence) == (producer.id, 0, 1)
    assert (told.current_txn_start_offset, told.coordinator_epoch) == (0, -1)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    producer.end(commit=True)
    producer.init()
    (told,) = wire.ask(request, 0).topics[0].partitions[0].active_producers
    assert told.current_txn_start_offset == -1
    assert told.coordinator_epoch >= 0
