"""The second transaction protocol (KIP-890), as stories: an epoch for each transaction."""

from dataclasses import replace

import pytest

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.records import KIND, PLAIN, TAGGED
from barnabas_broker.coordinator.transaction.shard import Granted
from barnabas_broker.coordinator.transaction.transaction import EXHAUSTED_EPOCH
from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.transaction.stories import (
    ID,
    LIMITS,
    LIMITS_2,
    T0,
    TIMEOUT_MS,
    Story,
)

OK = ErrorCode.NONE
FENCED = Granted(ErrorCode.PRODUCER_FENCED)
CONCURRENT = Granted(ErrorCode.CONCURRENT_TRANSACTIONS)
INVALID = Granted(ErrorCode.INVALID_TXN_STATE)


@pytest.fixture
def story() -> Story:
    return Story(LIMITS_2)


@pytest.mark.parametrize("commit", [True, False])
def test_every_end_gives_the_next_epoch(story: Story, commit: bool) -> None:
    """Markers carry it, so that no partition takes anything more under the one before."""
    first = story.begun()
    story.add(first, T0)
    granted = story.bump(first, commit=commit)
    second = Producer(first.id, first.epoch + 1)
    assert granted == Granted(OK, second)
    assert story.add(second, T0) is ErrorCode.CONCURRENT_TRANSACTIONS
    order = story.write_markers()
    assert (order.producer, order.commit, order.protocol) == (second, commit, 2)
    assert story.add(first, T0) is ErrorCode.PRODUCER_FENCED
    assert story.add(second, T0) is OK


@pytest.mark.parametrize("commit", [True, False])
def test_a_delayed_end_cannot_end_the_next_transaction(story: Story, commit: bool) -> None:
    """It has the epoch of the one before: what the first protocol cannot tell, this one can."""
    first = story.begun()
    story.add(first, T0)
    second = story.bump(first).producer
    story.write_markers()
    story.add(second, T0)
    assert story.bump(first, commit=commit) == FENCED
    assert story.state == "Ongoing"
    assert story.bump(second).code is OK


@pytest.mark.parametrize("commit", [True, False])
def test_a_repeated_end_txn_differs_from_the_next_one(story: Story, commit: bool) -> None:
    """Under way first, then answered as the first time, and never changed."""
    first = story.begun()
    story.add(first, T0)
    granted = story.bump(first, commit=commit)
    assert story.bump(first, commit=commit).code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert story.bump(first, commit=not commit) == INVALID
    for next_commit in (True, False):
        assert story.bump(granted.producer, commit=next_commit) == CONCURRENT
    story.write_markers()
    assert story.bump(first, commit=commit) == granted
    assert story.bump(first, commit=not commit) == INVALID
    assert story.bump(granted.producer, commit=True) == INVALID


def test_a_transaction_never_begun_can_be_aborted(story: Story) -> None:
    """With an epoch that nothing sent before can reach; there is nothing to commit."""
    producer = story.begun()
    assert story.bump(producer, commit=True) == INVALID
    for state in ("Empty", "CompleteAbort", "CompleteCommit"):
        if state == "CompleteCommit":
            story.add(producer, T0)
            producer = story.bump(producer).producer
            story.write_markers()
        assert story.state == state
        aborted = story.bump(producer, commit=False)
        assert aborted == Granted(OK, Producer(producer.id, producer.epoch + 1))
        assert story.transaction.started_ms == story.now_ms
        assert story.write_markers().partitions == frozenset()
        producer = aborted.producer
    assert story.bump(Producer(producer.id, producer.epoch - 2), commit=False) == FENCED


def test_a_stranger_ends_nothing(story: Story) -> None:
    """Unknown ids and producers are told so."""
    unknown = Granted(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    assert story.bump(Producer(7, 0)) == unknown
    producer = story.begun()
    story.add(producer, T0)
    assert story.bump(Producer(99, 0)) == unknown


def test_the_last_epoch_leads_over_to_another_id(story: Story) -> None:
    """The markers have the epoch above; the repeated end is known by the id before."""
    story.begun()
    story.shard.transactions[ID] = replace(story.transaction, epoch=EXHAUSTED_EPOCH)
    last = Producer(7, EXHAUSTED_EPOCH)
    story.add(last, T0)
    granted = story.bump(last)
    assert granted == Granted(OK, Producer(8, 0))
    story.restart()  # A new coordinator knows which id comes next.
    assert story.bump(last).code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert story.write_markers().producer == (7, EXHAUSTED_EPOCH + 1)
    assert story.bump(last) == granted
    story.restart()
    assert story.bump(last) == granted
    assert story.init(Producer(8, 0)).producer == (8, 1)
    story.add(Producer(8, 1), T0)
    assert story.bump(last).code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_timed_out_producer_may_abort_and_continue(story: Story) -> None:
    """Its records are refused; by aborting it learns the epoch under which it was shut out."""
    slow = story.begun()
    story.add(slow, T0)
    story.now_ms += TIMEOUT_MS + 1
    story.sweep(story.shard.abort_timed_out(story.now_ms))
    assert story.bump(slow, commit=True) == INVALID
    story.write_markers()
    assert story.add(slow, T0) is ErrorCode.PRODUCER_FENCED
    aborted = story.bump(slow, commit=False)
    assert aborted == Granted(OK, Producer(slow.id, slow.epoch + 1))
    assert story.add(aborted.producer, T0) is OK


@pytest.mark.parametrize("by_abort", [True, False])
def test_a_timed_out_producer_at_the_last_epoch_gets_a_new_id(story: Story, by_abort: bool) -> None:
    """Above the last epoch is only the one that shuts out: nothing could be told from late ends."""
    story.begun()
    story.shard.transactions[ID] = replace(story.transaction, epoch=EXHAUSTED_EPOCH)
    slow = Producer(7, EXHAUSTED_EPOCH)
    story.add(slow, T0)
    story.now_ms += TIMEOUT_MS + 1
    story.sweep(story.shard.abort_timed_out(story.now_ms))
    story.write_markers()

    def ask() -> Granted:
        return story.bump(slow, commit=False) if by_abort else story.init(slow)

    assert ask() == Granted(OK, Producer(8, 0))
    if by_abort:
        assert ask().code is ErrorCode.CONCURRENT_TRANSACTIONS
        story.write_markers()
    assert ask() == Granted(OK, Producer(8, 0))
    assert story.add(Producer(8, 0), T0) is OK


def test_a_replaced_producer_stays_fenced(story: Story) -> None:
    """The one that came has an epoch above the one under which the other was shut out."""
    old = story.begun()
    story.add(old, T0)
    assert story.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    story.write_markers()
    new = story.init().producer
    assert new == (old.id, old.epoch + 2)
    assert story.bump(old, commit=False) == FENCED
    assert story.init(old).code is ErrorCode.PRODUCER_FENCED


def test_a_producer_of_the_first_protocol_keeps_its_epoch(story: Story) -> None:
    """Old clients go on as before; an epoch below theirs is nobody's repeated end."""
    producer = story.begun()
    story.begun()
    now = Producer(producer.id, producer.epoch + 1)
    result = story.shard.add_partitions(ID, now, [T0], "add", story.now_ms)
    assert story.perform(result) is OK
    assert story.end(now) is OK
    assert story.write_markers().producer == now
    assert story.bump(producer) == FENCED


def test_a_tv2_transaction_may_end_with_tv1(story: Story) -> None:
    """Its marker has the epoch of its records then, and says so."""
    producer = story.begun()
    story.add(producer, T0)
    assert story.end(producer) is OK
    order = story.write_markers()
    assert (order.producer, order.protocol) == (producer, 0)


def test_a_failed_write_keeps_the_epoch(story: Story) -> None:
    """The producer asks again, with the epoch it has."""
    producer = story.begun()
    story.add(producer, T0)
    story.fail_writes = ErrorCode.NOT_ENOUGH_REPLICAS
    assert story.bump(producer) == Granted(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert story.orders == []
    story.fail_writes = None
    assert story.bump(producer).code is OK


def test_records_are_tagged_only_while_the_protocol_is_in_force(story: Story) -> None:
    """Where it is not any more, what is remembered is written again for every Kafka to read."""
    producer = story.begun()
    story.add(producer, T0)
    story.bump(producer)
    story.write_markers()
    assert {record.value_version for record in story.written} == {TAGGED}
    story.limits = LIMITS
    written = len(story.written)
    story.restart()
    (again,) = story.written[written:]
    assert again.value_version == PLAIN
    assert again.transaction == replace(story.transaction, protocol=0)
    assert KIND.decode(*KIND.encode(again)) == replace(
        again, transaction=replace(again.transaction, last_epoch=-1, previous_id=-1)
    )
    story.restart()
    assert len(story.written) == written + 1
