"""Requests of transactions, and about transactions, to a running broker."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas_kafka.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.server.running import Wire
from tests.broker.server.transactional import Transactional

# --- AddOffsetsToTxn, as a client sees it


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
def test_a_fenced_producer_gets_its_versions_error(wire: Wire, topic: str, version: int) -> None:
    """In words that its version knows."""
    producer = Transactional(wire, topic)
    producer.init()
    Transactional(wire, topic).init()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert producer.add_offsets("g", version) == fenced
    producer.transactional_id = ""
    assert producer.add_offsets("g") == ErrorCode.INVALID_REQUEST


# --- DescribeProducers, as a client sees it


def test_producers_are_described_with_their_transaction(wire: Wire, topic: str) -> None:
    """Where it begins, -1 when none is open; partitions that are not here have an error."""
    producer = Transactional(wire, topic)
    producer.init()
    producer.add(topic)
    producer.produce(topic, b"a", b"b")
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0, 9])])
    here, missing = wire.ask(request, 0).topics[0].partitions
    (response,) = here.active_producers
    assert (response.producer_id, response.producer_epoch, response.last_sequence) == (
        producer.id,
        0,
        1,
    )
    assert (response.current_txn_start_offset, response.coordinator_epoch) == (0, -1)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    producer.end(commit=True)
    producer.init()
    (response,) = wire.ask(request, 0).topics[0].partitions[0].active_producers
    assert response.current_txn_start_offset == -1
    assert response.coordinator_epoch >= 0


# --- DescribeTransactions, as a client sees it


def test_each_is_described_or_not_found(wire: Wire, topic: str) -> None:
    """With its state, its timeout and its partitions."""
    producer = Transactional(wire, topic, timeout_ms=5000)
    producer.init()
    producer.add(topic)
    request = DescribeTransactionsRequest(transactional_ids=[topic, "nobody", ""])
    response, nobody, empty = wire.ask(request, 0).transaction_states
    assert (response.transaction_state, response.transaction_timeout_ms) == ("Ongoing", 5000)
    assert (response.producer_id, response.producer_epoch) == (producer.id, producer.epoch)
    assert [(each.topic, each.partitions) for each in response.topics] == [(topic, [0])]
    assert response.transaction_start_time_ms > 0
    assert nobody.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST


# --- ListTransactions, as a client sees it


def listed(wire: Wire, version: int = 1, **filters: Any) -> set[str]:
    """The ids that filters let through."""
    answer = wire.ask(ListTransactionsRequest(**filters), version)
    assert answer.error_code == 0
    return {each.transactional_id for each in answer.transaction_states}


def test_filters_choose(wire: Wire, topic: str) -> None:
    """By state, by producer and by how long they are open; unknown states are named."""
    others, ongoing = listed(wire), listed(wire, state_filters=["Ongoing"])
    idle, busy = Transactional(wire, "idle"), Transactional(wire, "busy")
    for producer in (idle, busy):
        producer.init()
    busy.add(topic)
    assert listed(wire, version=0) == others | {"idle", "busy"}
    assert listed(wire, state_filters=["Ongoing"]) == ongoing | {"busy"}
    assert listed(wire, producer_id_filters=[idle.id]) == {"idle"}
    assert listed(wire, state_filters=["Ongoing"], duration_filter=3_600_000) == set()
    answer = wire.ask(ListTransactionsRequest(state_filters=["Sleeping"] * 2), 1)
    assert answer.unknown_state_filters == ["Sleeping"]
    assert answer.transaction_states == []
