"""One step of a member towards its target (KIP-848; Kafka's `CurrentAssignmentBuilder`).

    what the member has           then
    more than its target          it keeps the rest, gives that up, and keeps its epoch until it
                                  says that it owns none of it: UNREVOKED_PARTITIONS
    less, and all of it free      it gets all, and the target's epoch: STABLE
    less, and others hold some    it gets what is free, and the target's epoch:
                                  UNRELEASED_PARTITIONS

A partition is free when no member has it, neither to read nor to give up: so it never has two
owners, however far members have come.
"""

from collections.abc import Callable
from dataclasses import replace

from barnabas_broker.coordinator.group.consumer.member import (
    NOTHING,
    ConsumerMember,
    MemberState,
)
from barnabas_broker.coordinator.group.consumer.records import Partitions
from barnabas_broker.invariants import violated


def reconciled(
    member: ConsumerMember,
    *,
    epoch: int,
    target: Partitions,
    owned: Partitions | None,
    is_held: Callable[[Partitions], Partitions],
) -> ConsumerMember:
    """The member one step further; the same where it has to wait or is done.

    `epoch` and `target` are those of the target assignment. `owned` is what the member says it
    reads, None where it did not say. `is_held` gives those partitions that some member has.
    """
    if member.state is MemberState.STABLE and member.epoch == epoch:
        return member
    waits = member.state is MemberState.UNREVOKED_PARTITIONS
    if waits and (owned is None or owned & member.revoking):
        return member
    kept = member.assigned & target
    surplus = member.assigned - target
    assert not kept & surplus, violated("what is kept is not given up")
    if surplus and (owned is None or owned & surplus):
        return replace(
            member,
            previous_epoch=member.epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            revoking=surplus,
        )
    missing = target - kept
    assert not kept & missing, violated("what is kept is not missing")
    taken = is_held(missing)
    assert taken <= missing, violated("only what is asked for is answered")
    assert kept <= target, violated("a member reads its target assignment")
    return replace(
        member,
        epoch=epoch,
        previous_epoch=member.epoch,
        state=MemberState.UNRELEASED_PARTITIONS if taken else MemberState.STABLE,
        assigned=kept | (missing - taken),
        revoking=NOTHING,
    )
