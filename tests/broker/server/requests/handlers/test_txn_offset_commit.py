"""TxnOffsetCommit, as a client sees it."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.broker.server.members import commit, committed, find
from tests.broker.server.running import Wire
from tests.broker.server.transactional import Transactional


@pytest.fixture
def producer(wire: Wire, topic: str) -> Transactional:
    """One whose transaction has the offsets of a group named after the topic."""
    find(wire, topic)
    made = Transactional(wire, topic)
    made.init()
    assert made.add_offsets(topic) == 0
    return made


def ended(producer: Transactional, *, commit: bool) -> None:
    """End the transaction, and wait until everybody knows."""
    assert producer.end(commit=commit) == 0
    producer.init()


@pytest.mark.parametrize("version", range(5))
def test_offsets_count_when_the_transaction_is_committed(
    wire: Wire, topic: str, producer: Transactional, version: int
) -> None:
    """And not before."""
    assert producer.commit_offset(topic, topic, 7, version) == 0
    assert committed(wire, topic, topic) == -1
    ended(producer, commit=True)
    assert committed(wire, topic, topic) == 7


def test_offsets_of_an_aborted_transaction_are_gone(
    wire: Wire, topic: str, producer: Transactional
) -> None:
    """What was committed before stays."""
    commit(wire, topic, topic, 3)
    assert producer.commit_offset(topic, topic, 7) == 0
    ended(producer, commit=False)
    assert committed(wire, topic, topic) == 3


def test_require_stable_offsets_are_unstable_while_a_transaction_is_open(
    wire: Wire, topic: str, producer: Transactional
) -> None:
    """While a transaction may replace them (KIP-447)."""
    assert producer.commit_offset(topic, topic, 7) == 0
    request = OffsetFetchRequest(
        group_id=topic,
        topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])],
        require_stable=True,
    )
    (partition,) = wire.ask(request, 7).topics[0].partitions
    assert partition.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert partition.committed_offset == -1
    ended(producer, commit=True)
    (partition,) = wire.ask(request, 7).topics[0].partitions
    assert (partition.error_code, partition.committed_offset) == (0, 7)


def test_a_group_that_is_no_part_of_the_transaction_takes_nothing(wire: Wire, topic: str) -> None:
    """Nobody would ever decide about the offset."""
    find(wire, topic)
    producer = Transactional(wire, topic)
    producer.init()
    assert producer.commit_offset(topic, topic, 7) == ErrorCode.INVALID_TXN_STATE


def test_partitions_that_do_not_exist_are_named(topic: str, producer: Transactional) -> None:
    """They are not committed."""
    code = producer.commit_offset(topic, "nowhere", 7)
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_group_needs_a_name_here(wire: Wire, topic: str, producer: Transactional) -> None:
    """Unlike in OffsetCommit; the coordinator took the group itself into the transaction."""
    assert producer.add_offsets("") == 0
    assert producer.commit_offset("", topic, 7) == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("commit", [True, False])
def test_committing_is_joining_in_the_second_protocol(wire: Wire, topic: str, commit: bool) -> None:
    """Nobody has said that offsets of the group are part of the transaction."""
    find(wire, topic)
    producer = Transactional(wire, topic)
    producer.init()
    assert producer.commit_offset(topic, topic, 7, 5) == 0
    assert committed(wire, topic, topic) == -1
    assert producer.bump(commit=commit).error_code == 0
    assert producer.commit_offset(topic, topic, 8, 5) == 0  # Waits for the markers.
    assert committed(wire, topic, topic) == (7 if commit else -1)
    producer.epoch -= 1
    late = producer.commit_offset(topic, topic, 9, 5)
    assert late == ErrorCode.INVALID_PRODUCER_EPOCH
