"""Who leads when a controller takes over."""

import pytest

from barnabas_broker.controller.election import elect_at_start, first_leader
from barnabas_broker.zk.znodes import LeaderAndIsr, ReplicaAssignment


def test_the_preferred_replica_leads_a_new_partition() -> None:
    """All replicas of an empty log are in sync."""
    assert first_leader((2, 1), controller_epoch=5) == LeaderAndIsr(2, 0, (2, 1), 5)
    assert first_leader((), controller_epoch=5).leader == -1


@pytest.mark.parametrize(
    ("replicas", "isr", "live", "leader", "isr_after"),
    [
        ((1,), (1,), {1}, 1, (1,)),
        ((1, 2, 3), (3, 2, 1), {1, 2, 3}, 1, (3, 2, 1)),
        ((1, 2, 3), (2, 3), {1, 2, 3}, 2, (2, 3)),
        ((1, 2, 3), (1, 2, 3), {2}, 2, (2,)),
        ((1, 2), (2,), {1}, -1, (2,)),
        ((1, 2), (1, 2), set(), -1, (1, 2)),
    ],
)
def test_the_first_live_replica_in_sync_leads(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    live: set[int],
    leader: int,
    isr_after: tuple[int, ...],
) -> None:
    """Without one the partition waits, and remembers who was in sync."""
    state = LeaderAndIsr(9, 4, isr, 1)
    elected = elect_at_start(ReplicaAssignment(replicas), state, live=live, controller_epoch=2)
    assert elected == LeaderAndIsr(leader, 5, isr_after, 2)
