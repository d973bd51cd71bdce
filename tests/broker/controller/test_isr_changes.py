"""Which changes of in-sync replicas are refused, and with which error."""

from dataclasses import replace

import pytest

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.controller.isr_changes import InSyncChange, granted, judge
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.errors import ErrorCode

STATE = PartitionState(
    (1, 2, 3), (1, 2), leader=1, leader_epoch=5, controller_epoch=1, partition_epoch=8
)
CHANGE = InSyncChange("t", 0, leader_epoch=5, partition_epoch=8, isr=(1, 2, 3))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (CHANGE, None),
        (replace(CHANGE, partition_epoch=9), ErrorCode.NOT_CONTROLLER),
        (replace(CHANGE, leader_epoch=6), ErrorCode.NOT_CONTROLLER),
        (replace(CHANGE, leader_epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (replace(CHANGE, partition_epoch=7), ErrorCode.INVALID_UPDATE_VERSION),
        (replace(CHANGE, partition_epoch=7, isr=(1, 2)), ErrorCode.NONE),
        (replace(CHANGE, recovering=True), ErrorCode.INVALID_REQUEST),
        (replace(CHANGE, isr=(1,), recovering=True), ErrorCode.INVALID_REQUEST),
        (replace(CHANGE, isr=(1, 4)), ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_the_reasons_for_a_refusal(change: InSyncChange, expected: ErrorCode | None) -> None:
    """A leader that knows more than the controller has found one that is not, any more."""
    assert judge(STATE, change, broker_id=1, eligible={1, 2, 3}, version=2) is expected


@pytest.mark.parametrize(
    ("broker", "isr"),
    [(1, ()), (1, (2,)), (1, (1, 2, 2)), (2, (2, 3))],
    ids=["empty", "without the leader", "twice", "of a follower"],
)
def test_an_isr_that_no_leader_can_ask_for(broker: int, isr: tuple[int, ...]) -> None:
    """However it came to be asked for: it would be the one that leaders are elected from."""
    change = replace(CHANGE, isr=isr)
    code = judge(STATE, change, broker_id=broker, eligible={1, 2, 3, 4}, version=2)
    assert code is ErrorCode.INVALID_REQUEST


def test_an_ineligible_replica_has_another_error_in_old_versions() -> None:
    """They do not know that error."""
    change = replace(CHANGE, isr=(1, 4))
    code = judge(STATE, change, broker_id=1, eligible={1, 2, 3}, version=1)
    assert code is ErrorCode.OPERATION_NOT_ATTEMPTED


def test_a_broker_that_has_left_the_assignment() -> None:
    """A controller may have failed before it wrote a state without it, and told its leader.

    It does not come back. While it is in sync, the ISR of the others can change all the same.
    """
    change = replace(CHANGE, isr=(1, 4))
    code = judge(STATE, change, broker_id=1, eligible={1, 2, 3, 4}, version=2)
    assert code is ErrorCode.INELIGIBLE_REPLICA
    left = replace(STATE, isr=(1, 2, 4))
    assert judge(left, change, broker_id=1, eligible={1, 2, 3, 4}, version=2) is None


def test_a_partition_that_there_is_not() -> None:
    """Nor is there one that nobody has led yet."""
    for state in (None, replace(STATE, leader=-1, leader_epoch=-1)):
        code = judge(state, CHANGE, broker_id=1, eligible={1}, version=2)
        assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_that_has_recovered_may_say_so() -> None:
    """From then on others can be in sync with it."""
    recovering = replace(STATE, isr=(1,), recovering=True)
    change = replace(CHANGE, isr=(1,))
    assert judge(recovering, change, broker_id=1, eligible={1}, version=2) is None
    assert granted(change, broker_id=1, controller_epoch=3) == LeaderAndIsr(1, 5, (1,), 3)


@pytest.mark.parametrize(
    ("isr", "expected"), [((1,), ErrorCode.NONE), ((1, 2), ErrorCode.INVALID_REQUEST)]
)
def test_a_leader_that_recovers_is_alone(isr: tuple[int, ...], expected: ErrorCode) -> None:
    """It may have lost records that others are in sync with."""
    recovering = replace(STATE, isr=(1,), recovering=True)
    change = replace(CHANGE, isr=isr, recovering=True)
    assert judge(recovering, change, broker_id=1, eligible={1, 2}, version=2) is expected
