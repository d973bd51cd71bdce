"""Moving a partition to other replicas: what its state becomes at each step (KIP-455).

Kafka's `KafkaController.onPartitionReassignment`. While a move is under way a partition has all
replicas, old and new, with the new ones in `adding` and those to go in `removing`. It is over when
all that are to stay are in sync: those to go then leave the in-sync replicas and the assignment,
and if one of them led, one that stays does. Both are one change here; Apache, which cannot write
the two znodes together, has states between.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from barnabas_broker.cluster.image import NO_LEADER, PartitionState
from barnabas_broker.controller.elections import elect_for_reassignment
from barnabas_broker.invariants import violated
from barnabas_broker.zk.znodes import LeaderAndIsr, ReplicaAssignment


def origin(state: PartitionState) -> tuple[int, ...]:
    """The replicas a partition had, or would have again without the move."""
    return tuple(broker for broker in state.replicas if broker not in state.adding)


def target(assignment: ReplicaAssignment) -> tuple[int, ...]:
    """The replicas it is to have."""
    return tuple(each for each in assignment.replicas if each not in assignment.removing)


def in_progress(state: PartitionState) -> bool:
    """Whether a partition is being moved."""
    return bool(state.adding or state.removing)


def assignment_of(state: PartitionState) -> ReplicaAssignment:
    """The assignment as the znode of the topic says it."""
    return ReplicaAssignment(state.replicas, state.adding, state.removing)


def reassigned(state: PartitionState, wanted: Sequence[int]) -> ReplicaAssignment:
    """The assignment while a partition moves to `wanted`, which come first, in their order.

    A move that is under way is superseded: what counts are the replicas before it.
    """
    before = origin(state)
    together = tuple(dict.fromkeys([*wanted, *before]))
    assert set(together) == {*wanted, *before}, violated("a move keeps replicas until it is over")
    assert len(set(together)) == len(together), violated("a broker holds a partition once")
    return ReplicaAssignment(
        replicas=together,
        adding=tuple(broker for broker in together if broker not in before),
        removing=tuple(broker for broker in together if broker not in wanted),
    )


def advance(
    state: PartitionState,
    assignment: ReplicaAssignment,
    *,
    live: Collection[int],
    controller_epoch: int,
) -> tuple[LeaderAndIsr, ReplicaAssignment]:
    """The next state of a partition under an assignment: moved if it can be, else on the way.

    Replicas that are in neither are in sync no longer. The leader epoch is the next one, so that
    all replicas receive it. `live` are the brokers that may lead.
    """
    staying = target(assignment)
    in_sync = tuple(broker for broker in state.isr if broker in assignment.replicas)
    if set(staying) <= set(in_sync):
        kept = tuple(broker for broker in in_sync if broker in staying)
        assert set(kept) == set(staying), violated("a move is over when all that stay are in sync")
        moved = _led(state, staying, kept, live, controller_epoch)
        assert moved.leader in (*staying, NO_LEADER), violated("a remaining replica leads")
        if moved.leader != NO_LEADER:
            return moved, ReplicaAssignment(staying)
    return _led(state, assignment.replicas, in_sync, live, controller_epoch), assignment


def _led(
    state: PartitionState,
    replicas: tuple[int, ...],
    in_sync: tuple[int, ...],
    live: Collection[int],
    controller_epoch: int,
) -> LeaderAndIsr:
    assert set(in_sync) <= set(state.isr), violated("no replica joins the ISR without having all")
    before = LeaderAndIsr(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=in_sync or state.isr,
        controller_epoch=controller_epoch,
        recovering=state.recovering,
    )
    if state.leader in replicas and state.leader in live:
        return replace(before, leader_epoch=state.leader_epoch + 1)
    elected = elect_for_reassignment(replicas, before, live=live, controller_epoch=controller_epoch)
    assert elected is None or elected.leader_epoch > state.leader_epoch, violated(
        "a new leader has a new leader epoch"
    )
    if elected is not None:
        return elected
    return replace(before, leader=NO_LEADER, leader_epoch=state.leader_epoch + 1)
