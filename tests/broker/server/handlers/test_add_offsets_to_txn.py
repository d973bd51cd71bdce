"""AddOffsetsToTxn, as a client sees it."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker.server.running import Wire
from tests.broker.server.transactional import Transactional


@pytest.mark.parametrize("version", range(5))
def test_the_groups_partition_is_added(wire: Wire, topic: str, version: int) -> None:
    """Of the topic that offsets are in, which may have to be created first."""
    producer = Transactional(wire, topic)
    producer.init()
    assert producer.add_offsets("some group", version) == 0
    request = DescribeTransactionsRequest(transactional_ids=[topic])
    (state,) = wire.ask(request, 0).transaction_states
    assert [each.topic for each in state.topics] == ["__consumer_offsets"]


@pytest.mark.parametrize("version", [1, 2])
def test_who_was_fenced_is_told(wire: Wire, topic: str, version: int) -> None:
    """In words that its version knows."""
    producer = Transactional(wire, topic)
    producer.init()
    Transactional(wire, topic).init()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert producer.add_offsets("g", version) == fenced
    producer.transactional_id = ""
    assert producer.add_offsets("g") == ErrorCode.INVALID_REQUEST
