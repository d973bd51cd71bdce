"""Who leads a partition when a controller takes over.

Pure. A leader comes from the in-sync replicas, the first live one in the order of preference: it
has everything that was ever acknowledged. Without one the partition waits, leaderless, rather
than lose records; choosing a replica that is behind is an operator's decision.

Each change of leadership takes the next leader epoch. The controller of an embedded broker also
takes one when it elects itself again at start. Apache's controller, finding the leader alive,
would keep the epoch; but here a start is also the moment when a log that was not shut down
cleanly may have lost its tail, and a new epoch is what lets consumers notice (KIP-320).
"""

from collections.abc import Collection

from barnabas_broker.cluster.image import NO_LEADER
from barnabas_broker.zk.znodes import LeaderAndIsr, ReplicaAssignment

# The epoch of a partition's first leader.
FIRST_LEADER_EPOCH = 0


def first_leader(replicas: tuple[int, ...], *, controller_epoch: int) -> LeaderAndIsr:
    """The state of a new partition: all replicas are in sync, the preferred one leads."""
    return LeaderAndIsr(
        leader=replicas[0] if replicas else NO_LEADER,
        leader_epoch=FIRST_LEADER_EPOCH,
        isr=replicas,
        controller_epoch=controller_epoch,
    )


def elect_at_start(
    assignment: ReplicaAssignment,
    state: LeaderAndIsr,
    *,
    live: Collection[int],
    controller_epoch: int,
) -> LeaderAndIsr:
    """The state of a partition under a new controller, whose brokers alive are `live`."""
    in_sync = tuple(broker for broker in state.isr if broker in live)
    leader = next((broker for broker in assignment.replicas if broker in in_sync), NO_LEADER)
    return LeaderAndIsr(
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        isr=in_sync if leader != NO_LEADER else state.isr,
        controller_epoch=controller_epoch,
        recovering=state.recovering,
    )
