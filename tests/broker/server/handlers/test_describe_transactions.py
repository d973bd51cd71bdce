"""DescribeTransactions, as a client sees it."""

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker.server.running import Wire
from tests.broker.server.transactional import Transactional


def test_each_is_described_or_not_found(wire: Wire, topic: str) -> None:
    """With its state, its timeout and its partitions."""
    producer = Transactional(wire, topic, timeout_ms=5000)
    producer.init()
    producer.add(topic)
    request = DescribeTransactionsRequest(transactional_ids=[topic, "nobody", ""])
    told, nobody, empty = wire.ask(request, 0).transaction_states
    assert (told.transaction_state, told.transaction_timeout_ms) == ("Ongoing", 5000)
    assert (told.producer_id, told.producer_epoch) == (producer.id, producer.epoch)
    assert [(each.topic, each.partitions) for each in told.topics] == [(topic, [0])]
    assert told.transaction_start_time_ms > 0
    assert nobody.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST
