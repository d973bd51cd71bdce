"""The second transaction protocol (KIP-890), as scenarios: an epoch for each transaction."""

from dataclasses import replace

import pytest

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.records import KIND, PLAIN, TAGGED
from barnabas_broker.coordinator.transaction.shard import Granted
from barnabas_broker.coordinator.transaction.transaction import EXHAUSTED_EPOCH
from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.transaction.scenarios import (
    ID,
    LIMITS,
    LIMITS_2,
    T0,
    TIMEOUT_MS,
    Scenario,
)

OK = ErrorCode.NONE
FENCED = Granted(ErrorCode.PRODUCER_FENCED)
CONCURRENT = Granted(ErrorCode.CONCURRENT_TRANSACTIONS)
INVALID = Granted(ErrorCode.INVALID_TXN_STATE)


@pytest.fixture
def scenario() -> Scenario:
    return Scenario(LIMITS_2)


@pytest.mark.parametrize("commit", [True, False])
def test_every_end_gives_the_next_epoch(scenario: Scenario, commit: bool) -> None:
    """Markers carry it, so that no partition takes anything more under the one before."""
    first = scenario.begun()
    scenario.add(first, T0)
    granted = scenario.bump(first, commit=commit)
    second = Producer(first.id, first.epoch + 1)
    assert granted == Granted(OK, second)
    assert scenario.add(second, T0) is ErrorCode.CONCURRENT_TRANSACTIONS
    order = scenario.write_markers()
    assert (order.producer, order.commit, order.protocol) == (second, commit, 2)
    assert scenario.add(first, T0) is ErrorCode.PRODUCER_FENCED
    assert scenario.add(second, T0) is OK


@pytest.mark.parametrize("commit", [True, False])
def test_a_delayed_end_cannot_end_the_next_transaction(scenario: Scenario, commit: bool) -> None:
    """It has the epoch of the one before: what the first protocol cannot tell, this one can."""
    first = scenario.begun()
    scenario.add(first, T0)
    second = scenario.bump(first).producer
    scenario.write_markers()
    scenario.add(second, T0)
    assert scenario.bump(first, commit=commit) == FENCED
    assert scenario.state == "Ongoing"
    assert scenario.bump(second).code is OK


@pytest.mark.parametrize("commit", [True, False])
def test_a_repeated_end_txn_differs_from_the_next_one(scenario: Scenario, commit: bool) -> None:
    """Under way first, then answered as the first time, and never changed."""
    first = scenario.begun()
    scenario.add(first, T0)
    granted = scenario.bump(first, commit=commit)
    assert scenario.bump(first, commit=commit).code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scenario.bump(first, commit=not commit) == INVALID
    for next_commit in (True, False):
        assert scenario.bump(granted.producer, commit=next_commit) == CONCURRENT
    scenario.write_markers()
    assert scenario.bump(first, commit=commit) == granted
    assert scenario.bump(first, commit=not commit) == INVALID
    assert scenario.bump(granted.producer, commit=True) == INVALID


def test_a_transaction_never_begun_can_be_aborted(scenario: Scenario) -> None:
    """With an epoch that nothing sent before can reach; there is nothing to commit."""
    producer = scenario.begun()
    assert scenario.bump(producer, commit=True) == INVALID
    for state in ("Empty", "CompleteAbort", "CompleteCommit"):
        if state == "CompleteCommit":
            scenario.add(producer, T0)
            producer = scenario.bump(producer).producer
            scenario.write_markers()
        assert scenario.state == state
        aborted = scenario.bump(producer, commit=False)
        assert aborted == Granted(OK, Producer(producer.id, producer.epoch + 1))
        assert scenario.transaction.started_ms == scenario.now_ms
        assert scenario.write_markers().partitions == frozenset()
        producer = aborted.producer
    assert scenario.bump(Producer(producer.id, producer.epoch - 2), commit=False) == FENCED


def test_a_stranger_ends_nothing(scenario: Scenario) -> None:
    """Unknown ids and producers are told so."""
    unknown = Granted(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    assert scenario.bump(Producer(7, 0)) == unknown
    producer = scenario.begun()
    scenario.add(producer, T0)
    assert scenario.bump(Producer(99, 0)) == unknown


def test_the_last_epoch_leads_over_to_another_id(scenario: Scenario) -> None:
    """The markers have the epoch above; the repeated end is known by the id before."""
    scenario.begun()
    scenario.shard.transactions[ID] = replace(scenario.transaction, epoch=EXHAUSTED_EPOCH)
    last = Producer(7, EXHAUSTED_EPOCH)
    scenario.add(last, T0)
    granted = scenario.bump(last)
    assert granted == Granted(OK, Producer(8, 0))
    scenario.restart()  # A new coordinator knows which id comes next.
    assert scenario.bump(last).code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scenario.write_markers().producer == (7, EXHAUSTED_EPOCH + 1)
    assert scenario.bump(last) == granted
    scenario.restart()
    assert scenario.bump(last) == granted
    assert scenario.init(Producer(8, 0)).producer == (8, 1)
    scenario.add(Producer(8, 1), T0)
    assert scenario.bump(last).code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_timed_out_producer_may_abort_and_continue(scenario: Scenario) -> None:
    """Its records are refused; by aborting it learns the epoch under which it was shut out."""
    slow = scenario.begun()
    scenario.add(slow, T0)
    scenario.now_ms += TIMEOUT_MS + 1
    scenario.sweep(scenario.shard.abort_timed_out(scenario.now_ms))
    assert scenario.bump(slow, commit=True) == INVALID
    scenario.write_markers()
    assert scenario.add(slow, T0) is ErrorCode.PRODUCER_FENCED
    aborted = scenario.bump(slow, commit=False)
    assert aborted == Granted(OK, Producer(slow.id, slow.epoch + 1))
    assert scenario.add(aborted.producer, T0) is OK


@pytest.mark.parametrize("by_abort", [True, False])
def test_a_timed_out_producer_at_the_last_epoch_gets_a_new_id(
    scenario: Scenario, by_abort: bool
) -> None:
    """Above the last epoch is only the one that shuts out: nothing could be told from late ends."""
    scenario.begun()
    scenario.shard.transactions[ID] = replace(scenario.transaction, epoch=EXHAUSTED_EPOCH)
    slow = Producer(7, EXHAUSTED_EPOCH)
    scenario.add(slow, T0)
    scenario.now_ms += TIMEOUT_MS + 1
    scenario.sweep(scenario.shard.abort_timed_out(scenario.now_ms))
    scenario.write_markers()

    def ask() -> Granted:
        return scenario.bump(slow, commit=False) if by_abort else scenario.init(slow)

    assert ask() == Granted(OK, Producer(8, 0))
    if by_abort:
        assert ask().code is ErrorCode.CONCURRENT_TRANSACTIONS
        scenario.write_markers()
    assert ask() == Granted(OK, Producer(8, 0))
    assert scenario.add(Producer(8, 0), T0) is OK


def test_a_replaced_producer_stays_fenced(scenario: Scenario) -> None:
    """The one that came has an epoch above the one under which the other was shut out."""
    old = scenario.begun()
    scenario.add(old, T0)
    assert scenario.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    scenario.write_markers()
    new = scenario.init().producer
    assert new == (old.id, old.epoch + 2)
    assert scenario.bump(old, commit=False) == FENCED
    assert scenario.init(old).code is ErrorCode.PRODUCER_FENCED


def test_a_producer_of_the_first_protocol_keeps_its_epoch(scenario: Scenario) -> None:
    """Old clients go on as before; an epoch below theirs is nobody's repeated end."""
    producer = scenario.begun()
    scenario.begun()
    now = Producer(producer.id, producer.epoch + 1)
    result = scenario.shard.add_partitions(ID, now, [T0], "add", scenario.now_ms)
    assert scenario.perform(result) is OK
    assert scenario.end(now) is OK
    assert scenario.write_markers().producer == now
    assert scenario.bump(producer) == FENCED


def test_a_tv2_transaction_may_end_with_tv1(scenario: Scenario) -> None:
    """Its marker has the epoch of its records then, and says so."""
    producer = scenario.begun()
    scenario.add(producer, T0)
    assert scenario.end(producer) is OK
    order = scenario.write_markers()
    assert (order.producer, order.protocol) == (producer, 0)


def test_a_failed_write_keeps_the_epoch(scenario: Scenario) -> None:
    """The producer asks again, with the epoch it has."""
    producer = scenario.begun()
    scenario.add(producer, T0)
    scenario.fail_writes = ErrorCode.NOT_ENOUGH_REPLICAS
    assert scenario.bump(producer) == Granted(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scenario.orders == []
    scenario.fail_writes = None
    assert scenario.bump(producer).code is OK


def test_records_are_tagged_only_while_the_protocol_is_in_force(scenario: Scenario) -> None:
    """Where it is not any more, what is remembered is written again for every Kafka to read."""
    producer = scenario.begun()
    scenario.add(producer, T0)
    scenario.bump(producer)
    scenario.write_markers()
    assert {record.value_version for record in scenario.written} == {TAGGED}
    scenario.limits = LIMITS
    written = len(scenario.written)
    scenario.restart()
    (again,) = scenario.written[written:]
    assert again.value_version == PLAIN
    assert again.transaction == replace(scenario.transaction, protocol=0)
    assert KIND.decode(*KIND.encode(again)) == replace(
        again, transaction=replace(again.transaction, last_epoch=-1, previous_id=-1)
    )
    scenario.restart()
    assert len(scenario.written) == written + 1
