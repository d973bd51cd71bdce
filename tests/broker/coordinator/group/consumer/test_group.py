"""What records make of a group."""

from dataclasses import replace
from uuid import UUID

from barnabas_broker.coordinator.group.consumer.fencing import group_tombstones
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import epoch_record
from barnabas_broker.coordinator.group.consumer.target import target_records

ZERO = (UUID(int=1), 0)


def test_the_state_follows_from_epochs() -> None:
    """Empty, Assigning, Reconciling and Stable are never written: they are worked out."""
    group = ConsumerGroup("g")
    assert group.state_name == "Empty"
    member = ConsumerMember(id="m", topics=frozenset({"t"}))
    group.replay(member.subscription_record("g"))
    group.replay(epoch_record("g", 1))
    assert group.state_name == "Assigning"
    for record in target_records("g", {}, {"m": frozenset({ZERO})}, 1):
        group.replay(record)
    assert group.state_name == "Reconciling"
    group.replay(replace(member, epoch=1, assigned=frozenset({ZERO})).current_record("g"))
    assert group.state_name == "Stable"
    assert group.owners == {ZERO: "m"}


def test_a_partition_s_next_owner_may_be_read_first() -> None:
    """A cleaned log has of each member the last record, in whatever order these came."""
    group = ConsumerGroup("g")
    old, new = ConsumerMember(id="old"), ConsumerMember(id="new")
    held = frozenset({ZERO})
    group.replay(replace(old, assigned=held).current_record("g"))
    group.replay(replace(new, assigned=held).current_record("g"))
    group.replay(old.current_record("g"))
    assert group.owners == {ZERO: "new"}


def test_tombstones_leave_nothing_of_a_group_but_its_name() -> None:
    """Members, targets and topics go; the group itself is its keeper's."""
    group = ConsumerGroup("g")
    member = ConsumerMember(id="m", instance_id="i", assigned=frozenset({ZERO}))
    group.replay(member.subscription_record("g"))
    group.replay(member.current_record("g"))
    for record in group_tombstones(group):
        group.replay(record)
    assert (group.members, group.owners, group.static, group.target) == ({}, {}, {}, {})
    assert (group.epoch, group.target_epoch) == (0, 0)
