"""Whether a replica is to be counted out, for its log directory takes no more records.

In an offline directory it is of no use. In a full one it still has all it had, so it is counted
out only where the others are enough to go on without it: then a leader yields to one that is in
sync with it, and no producer waits any more for a follower that can append nothing. That follows
the topic demands, `min.insync.replicas`: disks that fill up together must not leave records on
fewer replicas than that. Where no replica can take over, the leader keeps on serving what there is.
"""

from barnabas_broker.cluster.image import NO_LEADER, PartitionState
from barnabas_broker.log.health import Health


def counted_out(state: PartitionState, broker_id: int, health: Health, *, min_in_sync: int) -> bool:
    """Whether the partition is better off without the replica of this broker, in its state."""
    if health is not Health.FULL:
        return health is Health.OFFLINE
    if state.leader == NO_LEADER:
        return False
    if broker_id not in state.isr:
        return True
    return len(state.isr) - 1 >= max(1, min_in_sync)
