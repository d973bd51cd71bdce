"""Transactional ids, as scenarios: each request and what comes of it."""

from dataclasses import replace

import pytest

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.shard import (
    Granted,
    Initialisation,
    Shard,
    WriteMarkers,
    write_error,
)
from barnabas_broker.coordinator.transaction.states import MAY_FOLLOW, TransactionState
from barnabas_broker.coordinator.transaction.transaction import EXHAUSTED_EPOCH
from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.transaction.scenarios import ID, LIMITS, T0, T1, TIMEOUT_MS, Scenario


def test_a_transaction_from_begin_to_end() -> None:
    """Every state is written before anybody hears of it, and markers go to every partition."""
    scenario = Scenario()
    producer = scenario.begun()
    assert producer == (7, 0)
    assert scenario.add(producer, T0) is ErrorCode.NONE
    assert scenario.add(producer, T0, T1) is ErrorCode.NONE
    assert scenario.state == "Ongoing"
    assert scenario.end(producer) is ErrorCode.NONE
    assert scenario.state == "PrepareCommit"
    order = scenario.write_markers()
    written_to = frozenset({T0, T1})
    assert order == WriteMarkers(ID, producer, True, written_to, started_ms=scenario.now_ms)
    assert scenario.state == "CompleteCommit"
    states = [record.transaction.state.value for record in scenario.written if record.transaction]
    assert states == ["Empty", "Ongoing", "Ongoing", "PrepareCommit", "CompleteCommit"]


def test_the_markers_of_one_transaction_do_not_complete_the_next() -> None:
    """Both have the same producer; an order may be carried out twice, and late."""
    scenario = Scenario()
    producer = scenario.begun()
    scenario.add(producer, T0)
    scenario.end(producer)
    order = scenario.write_markers()
    scenario.now_ms += 1
    scenario.add(producer, T1)
    scenario.end(producer)
    assert scenario.state == "PrepareCommit"
    scenario.perform(scenario.shard.complete(order, scenario.now_ms))
    assert scenario.state == "PrepareCommit"
    scenario.write_markers()
    assert scenario.state == "CompleteCommit"


def test_adding_a_partition_twice_writes_nothing() -> None:
    """It is part of the transaction already."""
    scenario = Scenario()
    producer = scenario.begun()
    scenario.add(producer, T0)
    written = len(scenario.written)
    assert scenario.add(producer, T0) is ErrorCode.NONE
    assert len(scenario.written) == written


def test_nothing_begins_before_the_end_is_known() -> None:
    """While markers are written, the next transaction and the next producer have to wait."""
    scenario = Scenario()
    producer = scenario.begun()
    scenario.add(producer, T0)
    scenario.end(producer)
    assert scenario.add(producer, T0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scenario.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scenario.shard.verify(ID, producer, [T0]) == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}
    scenario.write_markers()
    assert scenario.add(producer, T1) is ErrorCode.NONE
    assert scenario.transaction.partitions == {T1}


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_may_be_repeated_but_not_changed(commit: bool) -> None:
    """Before its markers are written it is under way, afterwards it has happened."""
    scenario = Scenario()
    producer = scenario.begun()
    assert scenario.end(producer, commit=commit) is ErrorCode.INVALID_TXN_STATE
    scenario.add(producer, T0)
    scenario.end(producer, commit=commit)
    assert scenario.end(producer, commit=commit) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scenario.end(producer, commit=not commit) is ErrorCode.INVALID_TXN_STATE
    scenario.write_markers()
    assert scenario.end(producer, commit=commit) is ErrorCode.NONE
    assert scenario.end(producer, commit=not commit) is ErrorCode.INVALID_TXN_STATE
    assert scenario.orders == []


def test_a_new_producer_aborts_what_the_old_one_left() -> None:
    """It is shut out first, and asks again when the abort is over."""
    scenario = Scenario()
    old = scenario.begun()
    scenario.add(old, T0)
    assert scenario.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scenario.end(old) is ErrorCode.PRODUCER_FENCED
    order = scenario.write_markers()
    assert (order.commit, order.producer) == (False, Producer(7, 1))
    assert scenario.init() == Granted(ErrorCode.NONE, Producer(7, 2))
    assert scenario.add(old, T0) is ErrorCode.PRODUCER_FENCED


def test_a_timed_out_transaction_is_aborted_and_fenced() -> None:
    """Not before the time its producer asked for is over."""
    scenario = Scenario()
    producer = scenario.begun()
    scenario.add(producer, T0)
    scenario.now_ms += TIMEOUT_MS
    assert scenario.sweep(scenario.shard.abort_timed_out(scenario.now_ms)) == 0
    scenario.now_ms += 1
    assert scenario.sweep(scenario.shard.abort_timed_out(scenario.now_ms)) == 1
    assert scenario.state == "PrepareAbort"
    assert scenario.sweep(scenario.shard.abort_timed_out(scenario.now_ms)) == 0
    scenario.write_markers()
    assert scenario.end(producer) is ErrorCode.PRODUCER_FENCED
    assert scenario.init().producer == (7, 2)


def test_ids_that_are_not_used_are_forgotten() -> None:
    """But none with an open transaction; the next producer begins with another id."""
    scenario = Scenario()
    producer = scenario.begun()
    scenario.add(producer, T0)
    scenario.now_ms += LIMITS.expiration_ms
    assert scenario.sweep(scenario.shard.expire(scenario.now_ms)) == 0
    scenario.end(producer)
    scenario.write_markers()
    scenario.now_ms += LIMITS.expiration_ms
    assert scenario.sweep(scenario.shard.expire(scenario.now_ms)) == 1
    assert scenario.shard.transactions == {}
    assert scenario.end(producer) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert scenario.begun() == (8, 0)


def test_a_producer_may_bump_its_own_epoch() -> None:
    """And ask again when it missed the answer, until somebody else has come (KIP-360)."""
    scenario = Scenario()
    first = scenario.begun()
    assert scenario.init(first).producer == (7, 1)
    assert scenario.init(first).producer == (7, 1)
    assert scenario.init(Producer(7, 1)).producer == (7, 2)
    assert scenario.init(first).code is ErrorCode.PRODUCER_FENCED
    assert scenario.init(Producer(6, 2)).code is ErrorCode.PRODUCER_FENCED
    scenario.begun()
    assert scenario.init(Producer(7, 2)).code is ErrorCode.PRODUCER_FENCED


def test_a_fenced_producer_cannot_abort_its_successor() -> None:
    """Kafka aborts first and compares epochs afterwards."""
    scenario = Scenario()
    old = scenario.begun()
    new = scenario.begun()
    scenario.add(new, T0)
    assert scenario.init(old).code is ErrorCode.PRODUCER_FENCED
    assert scenario.end(new) is ErrorCode.NONE


def test_an_unknown_producer_that_names_an_id_gets_a_new_one() -> None:
    """Its transactional id was forgotten; there is nobody to be fenced."""
    assert Scenario().init(Producer(3, 5)) == Granted(ErrorCode.NONE, Producer(7, 0))


@pytest.mark.parametrize("expected", [False, True])
def test_the_last_epoch_is_followed_by_another_id(expected: bool) -> None:
    """A producer that bumps its own may ask for that twice, too."""
    scenario = Scenario()
    scenario.begun()
    scenario.shard.transactions[ID] = replace(scenario.transaction, epoch=EXHAUSTED_EPOCH)
    last = Producer(7, EXHAUSTED_EPOCH)
    granted = scenario.init(last) if expected else scenario.init()
    assert granted.producer == (8, 0)
    assert scenario.add(last, T0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    again = scenario.init(last)
    assert again.code is (ErrorCode.NONE if expected else ErrorCode.PRODUCER_FENCED)


def test_fencing_at_the_last_epoch_leaves_room() -> None:
    """The epoch above is only ever used to shut a producer out."""
    scenario = Scenario()
    scenario.begun()
    scenario.shard.transactions[ID] = replace(scenario.transaction, epoch=EXHAUSTED_EPOCH)
    scenario.add(Producer(7, EXHAUSTED_EPOCH), T0)
    assert scenario.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scenario.write_markers().producer == (7, EXHAUSTED_EPOCH + 1)
    assert scenario.init().producer == (8, 0)


@pytest.mark.parametrize("timeout_ms", [0, -5, LIMITS.timeout_max_ms + 1])
def test_timeouts_have_bounds(timeout_ms: int) -> None:
    """Nothing is written for a request outside of them."""
    scenario = Scenario()
    assert scenario.init(timeout_ms=timeout_ms).code is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert scenario.written == []


def test_verification_says_what_is_part_of_the_transaction() -> None:
    """Partition by partition, and why nothing is."""
    scenario = Scenario()
    producer = scenario.begun()
    scenario.add(producer, T0)
    assert scenario.shard.verify(ID, producer, [T0, T1]) == {
        T0: ErrorCode.NONE,
        T1: ErrorCode.INVALID_TXN_STATE,
    }
    fenced = Producer(producer.id, producer.epoch + 1)
    assert scenario.shard.verify(ID, fenced, [T0]) == {T0: ErrorCode.PRODUCER_FENCED}
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert scenario.shard.verify("nobody", producer, [T0]) == {T0: unknown}


def test_a_failed_write_changes_nothing() -> None:
    """Whoever waits is told; the same request may succeed later."""
    scenario = Scenario()
    producer = scenario.begun()
    scenario.add(producer, T0)
    scenario.fail_writes = ErrorCode.NOT_ENOUGH_REPLICAS
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scenario.add(producer, T1) is unavailable
    assert scenario.end(producer) is unavailable
    assert scenario.init().code is unavailable
    assert (scenario.state, scenario.orders) == ("Ongoing", [])
    scenario.fail_writes = None
    assert scenario.end(producer) is ErrorCode.NONE
    scenario.fail_writes = ErrorCode.KAFKA_STORAGE_ERROR
    scenario.write_markers()
    assert scenario.state == "PrepareCommit"


@pytest.mark.parametrize("state", list(TransactionState))
def test_a_restart_goes_on_where_it_was(state: TransactionState) -> None:
    """In every state that can be written; markers are ordered anew where an end was decided."""
    scenario = Scenario()
    producer = scenario.begun()
    scenario.add(producer, T0)
    if state.value.endswith(("Commit", "Abort")):
        scenario.end(producer, commit=state.value.endswith("Commit"))
    if state.value.startswith("Complete"):
        scenario.write_markers()
    before, ordered = scenario.transaction, list(scenario.orders)
    scenario.restart()
    assert scenario.transaction == before
    assert scenario.orders == ordered
    scenario.restart()
    assert scenario.orders == ordered


def test_an_order_that_was_overtaken_completes_nothing() -> None:
    """A report about an earlier transaction is not one about this."""
    scenario = Scenario()
    producer = scenario.begun()
    scenario.add(producer, T0)
    scenario.end(producer)
    order = scenario.write_markers()
    scenario.begun()
    assert scenario.shard.complete(order, scenario.now_ms).records == []
    assert scenario.shard.complete(replace(order, transactional_id="x"), 0).records == []


def test_resigning_forgets_everything() -> None:
    """Another broker reads it from the log."""
    scenario = Scenario()
    scenario.begun()
    assert scenario.shard.resign(scenario.now_ms).answers == []
    assert scenario.shard.transactions == {}
    assert scenario.shard.next_ms is None
    assert scenario.shard.tick(0) is None


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST),
    ],
)
def test_failed_writes_map_to_producer_errors(code: ErrorCode, reported: ErrorCode) -> None:
    """Retriable ones send it to ask again, or to look for the coordinator."""
    assert write_error(code) is reported


def test_a_new_id_wants_a_producer_id() -> None:
    """One that is known keeps its own."""
    scenario = Scenario()
    request = Initialisation(transactional_id=ID, timeout_ms=1)
    assert Shard(LIMITS).wants_producer_id(request)
    scenario.begun()
    assert not scenario.shard.wants_producer_id(request)


def test_every_state_leads_somewhere_or_nowhere_for_good() -> None:
    """Only what is dead has no way on."""
    assert set(MAY_FOLLOW) == set(TransactionState)
    assert [state for state, next_ones in MAY_FOLLOW.items() if not next_ones] == [
        TransactionState.DEAD
    ]


def test_no_new_id_without_room() -> None:
    """Its producer asks again; those that there are go on, and what was written is read back."""
    scenario = Scenario(replace(LIMITS, memory_bytes_max=1))
    assert scenario.init().code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (scenario.shard.transactions, scenario.shard.account.held) == ({}, 0)
    scenario.shard.limits = LIMITS
    producer = scenario.begun()
    scenario.limits = scenario.shard.limits = replace(LIMITS, memory_bytes_max=1)
    assert scenario.init().code is ErrorCode.NONE
    assert scenario.add(producer, T0) is ErrorCode.PRODUCER_FENCED
    producer = scenario.init().producer
    assert scenario.add(producer, T0) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    scenario.restart()
    assert scenario.shard.account.held == scenario.transaction.memory_bytes > 0
    scenario.now_ms += LIMITS.expiration_ms
    assert scenario.sweep(scenario.shard.expire(scenario.now_ms)) == 1
    assert scenario.shard.account.held == 0
