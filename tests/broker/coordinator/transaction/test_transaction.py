"""A transactional id as a value."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from barnabas_broker.coordinator.transaction.limits import Limits
from barnabas_broker.coordinator.transaction.states import MAY_FOLLOW, TransactionState
from barnabas_broker.coordinator.transaction.transaction import EPOCH_MAX, Transaction
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings.broker import BrokerSettings

T0 = TopicPartition("t", 0)


def in_state(state: TransactionState) -> Transaction:
    """One in that state."""
    return Transaction(id="x", producer_id=1, epoch=0, timeout_ms=10, state=state, started_ms=5)


@pytest.mark.parametrize("state", list(TransactionState))
def test_only_what_the_table_allows_may_follow(
    state: TransactionState, violations: list[str]
) -> None:
    """Everything else is a mistake of the coordinator, and stops it."""
    steps: dict[TransactionState, Callable[[Transaction], Transaction]] = {
        TransactionState.ONGOING: lambda it: it.with_partitions([T0], 9),
        TransactionState.PREPARE_EPOCH_FENCE: lambda it: it.fenced(),
        TransactionState.PREPARE_COMMIT: lambda it: it.prepared(commit=True, now_ms=9),
        TransactionState.PREPARE_ABORT: lambda it: it.prepared(commit=False, now_ms=9),
    }
    for target, step in steps.items():
        if target in MAY_FOLLOW[state]:
            assert step(in_state(state)).state is target
        else:
            with pytest.raises(AssertionError):
                step(in_state(state))
            assert violations.pop().endswith(f"is followed by {target}")


def test_time_runs_from_the_first_partition() -> None:
    """And only while the transaction is open."""
    idle = in_state(TransactionState.EMPTY)
    assert not idle.timed_out(1000)
    begun = idle.with_partitions([T0], 100).with_partitions([TopicPartition("t", 1)], 105)
    assert (begun.started_ms, begun.updated_ms) == (100, 105)
    assert (begun.timed_out(110), begun.timed_out(111)) == (False, True)


def test_epochs_do_not_run_over() -> None:
    """The last one is fenced with itself."""
    last = replace(in_state(TransactionState.ONGOING), epoch=EPOCH_MAX)
    assert last.fenced().epoch == EPOCH_MAX


def test_defaults_are_kafkas() -> None:
    """A quarter of an hour, and seven days."""
    limits = Limits.from_settings(BrokerSettings.from_mapping({}))
    assert limits == Limits(timeout_max_ms=900_000, expiration_ms=604_800_000)
