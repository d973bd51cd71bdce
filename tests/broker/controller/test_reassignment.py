"""The states of a partition on its way to other replicas."""

import pytest

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.controller.reassignment import (
    advance,
    assignment_of,
    in_progress,
    origin,
    reassigned,
    target,
)
from barnabas_broker.zk.znodes import LeaderAndIsr, ReplicaAssignment

STATE = PartitionState((1, 2, 3), (1, 2, 3), leader=1, leader_epoch=4, controller_epoch=1)
LIVE = {1, 2, 3, 4, 5, 6}
MOVING = PartitionState(
    (4, 5, 6, 1, 2, 3),
    (1, 2, 3, 4, 5),
    leader=1,
    leader_epoch=5,
    controller_epoch=1,
    adding=(4, 5, 6),
    removing=(1, 2, 3),
)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ((4, 5, 6), ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))),
        ((3, 4, 2), ReplicaAssignment((3, 4, 2, 1), (4,), (1,))),
        ((2, 1, 3), ReplicaAssignment((2, 1, 3))),
        ((1,), ReplicaAssignment((1, 2, 3), (), (2, 3))),
    ],
)
def test_the_wanted_replicas_come_first(
    wanted: tuple[int, ...], expected: ReplicaAssignment
) -> None:
    """Behind them those that are to go, until the others are in sync."""
    assignment = reassigned(STATE, wanted)
    assert assignment == expected
    assert target(assignment) == wanted


def test_a_move_supersedes_the_one_before() -> None:
    """What counts are the replicas that there were at first."""
    assert origin(MOVING) == (1, 2, 3)
    assert in_progress(MOVING)
    assert reassigned(MOVING, (1, 2, 7)) == ReplicaAssignment((1, 2, 7, 3), (7,), (3,))
    assert reassigned(MOVING, origin(MOVING)) == ReplicaAssignment((1, 2, 3))


def test_a_move_begins_with_all_replicas_and_the_same_leader() -> None:
    """In the next leader epoch, so that all hear of it."""
    state, assignment = advance(STATE, reassigned(STATE, (4, 5, 6)), live=LIVE, controller_epoch=2)
    assert state == LeaderAndIsr(1, 5, (1, 2, 3), 2)
    assert assignment == assignment_of(MOVING)


def test_a_move_waits_until_all_that_stay_are_in_sync() -> None:
    """Then those that go are out of sync and out of the assignment, and one that stays leads."""
    state, assignment = advance(MOVING, assignment_of(MOVING), live=LIVE, controller_epoch=2)
    assert (state.leader, assignment) == (1, assignment_of(MOVING))
    synced = PartitionState(
        MOVING.replicas, (1, 2, 3, 4, 5, 6), leader=1, leader_epoch=5, controller_epoch=1,
        adding=MOVING.adding, removing=MOVING.removing,
    )  # fmt: skip
    state, assignment = advance(synced, assignment_of(synced), live=LIVE, controller_epoch=2)
    assert state == LeaderAndIsr(4, 6, (4, 5, 6), 2)
    assert assignment == ReplicaAssignment((4, 5, 6))


def test_a_move_does_not_end_without_a_replica_to_lead() -> None:
    """All that stay are in sync, but none of them is alive."""
    state = PartitionState(
        (4, 1), (1, 4), leader=1, leader_epoch=5, controller_epoch=1, adding=(4,), removing=(1,)
    )
    moved, assignment = advance(state, assignment_of(state), live={1}, controller_epoch=2)
    assert moved == LeaderAndIsr(1, 6, (1, 4), 2)
    assert assignment == assignment_of(state)


def test_a_move_keeps_the_isr_that_there_is() -> None:
    """Where none of it is among the replicas any more: only it has what is committed."""
    state = PartitionState((4, 5), (1,), leader=-1, leader_epoch=5, controller_epoch=1)
    moved, assignment = advance(state, assignment_of(state), live=LIVE, controller_epoch=2)
    assert moved.isr == (1,)
    assert moved.leader == -1
    assert assignment == assignment_of(state)


def test_a_move_that_is_called_off_ends_at_once() -> None:
    """What it had added is in sync no longer, and if that led, another one does."""
    led_by_new = PartitionState(
        MOVING.replicas, (1, 2, 3, 4, 5), leader=4, leader_epoch=5, controller_epoch=1,
        adding=MOVING.adding, removing=MOVING.removing,
    )  # fmt: skip
    back = reassigned(led_by_new, origin(led_by_new))
    state, assignment = advance(led_by_new, back, live=LIVE, controller_epoch=2)
    assert state == LeaderAndIsr(1, 6, (1, 2, 3), 2)
    assert assignment == ReplicaAssignment((1, 2, 3))
