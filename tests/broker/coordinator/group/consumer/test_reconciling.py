"""One step of a member towards its target."""

from uuid import UUID

from barnabas_broker.coordinator.group.consumer.member import ConsumerMember, MemberState
from barnabas_broker.coordinator.group.consumer.reconciling import reconciled
from barnabas_broker.coordinator.group.consumer.records import Partitions


def some(*numbers: int) -> Partitions:
    return frozenset((UUID(int=1), number) for number in numbers)


def step(
    member: ConsumerMember,
    target: Partitions,
    *,
    owned: Partitions | None = None,
    held: Partitions = frozenset(),
) -> ConsumerMember:
    return reconciled(member, epoch=9, target=target, owned=owned, is_held=lambda each: each & held)


STABLE = ConsumerMember(id="m", epoch=8, previous_epoch=7, assigned=some(0, 1))


def test_partitions_are_revoked_before_new_ones_are_assigned() -> None:
    """The epoch stays until it is; nothing new comes before."""
    found = step(STABLE, some(1, 2), owned=some(0, 1))
    assert (found.epoch, found.state) == (8, MemberState.UNREVOKED_PARTITIONS)
    assert (found.assigned, found.revoking) == (some(1), some(0))
    assert step(found, some(1, 2)) == found, "it did not say what it owns"
    assert step(found, some(1, 2), owned=some(0, 1)) == found, "it still owns it"
    after = step(found, some(1, 2), owned=some(1))
    assert (after.epoch, after.previous_epoch, after.state) == (9, 8, MemberState.STABLE)
    assert (after.assigned, after.revoking) == (some(1, 2), some())


def test_partitions_owned_by_others_are_assigned_once_free() -> None:
    """What is free comes at once, the rest when it is."""
    found = step(STABLE, some(0, 1, 2, 3), held=some(3))
    assert (found.epoch, found.state) == (9, MemberState.UNRELEASED_PARTITIONS)
    assert found.assigned == some(0, 1, 2)
    after = step(found, some(0, 1, 2, 3))
    assert (after.state, after.assigned) == (MemberState.STABLE, some(0, 1, 2, 3))


def test_partitions_already_released_need_no_revocation() -> None:
    """A member that owns nothing, as after a restart, gets its new epoch at once."""
    found = step(STABLE, some(2), owned=some())
    assert (found.epoch, found.assigned) == (9, some(2))


def test_a_reconciled_member_is_unchanged() -> None:
    """Once more is no change, and nothing is written."""
    found = step(STABLE, some(0, 1))
    assert step(found, some(0, 1)) is found
