"""Which replicas are counted out when their directory takes no records."""

from __future__ import annotations

import pytest

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.log.health import Health
from barnabas_broker.replica.replica_demotion import counted_out


def state(isr: tuple[int, ...], leader: int) -> PartitionState:
    return PartitionState(
        replicas=(3, 1, 2), isr=isr, leader=leader, leader_epoch=3, controller_epoch=1
    )


@pytest.mark.parametrize(
    ("isr", "leader", "min_in_sync", "expected"),
    [
        ((1, 2, 3), 1, 2, True),
        ((1, 2, 3), 2, 2, True),  # A follower, for which producers would wait.
        ((1, 2), 1, 1, True),
        ((1, 2), 1, 2, False),  # The records would be on fewer than they must be.
        ((1,), 1, 1, False),  # It alone has them, and lets them be read.
        ((1,), -1, 1, False),
        ((2, 3), -1, 1, False),
        ((2, 3), 2, 1, True),  # It cannot catch up, and must not be elected.
    ],
)
def test_in_a_full_directory(
    isr: tuple[int, ...], leader: int, min_in_sync: int, expected: bool
) -> None:
    """Where the others are enough, and somebody leads."""
    found = counted_out(state(isr, leader), 1, Health.FULL, min_in_sync=min_in_sync)
    assert found is expected


@pytest.mark.parametrize("isr", [(1, 2, 3), (1,)])
def test_offline_and_online(isr: tuple[int, ...]) -> None:
    """Whoever else there is."""
    assert counted_out(state(isr, 1), 1, Health.OFFLINE, min_in_sync=2)
    assert not counted_out(state(isr, 1), 1, Health.ONLINE, min_in_sync=1)
