"""A member, written and read."""

from uuid import UUID

from barnabas_broker.coordinator.group.consumer.member import ConsumerMember, MemberState
from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, decode
from barnabas_kafka.protocol.embedded_consumers import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

MEMBER = ConsumerMember(
    id="m",
    instance_id="i",
    rack_id="r",
    client_id="c",
    client_host="/h",
    topics=frozenset({"t", "u"}),
    regex="a.*",
    rebalance_timeout_ms=7,
    assignor="range",
    epoch=5,
    previous_epoch=4,
    state=MemberState.UNREVOKED_PARTITIONS,
    assigned=frozenset({(UUID(int=1), 0), (UUID(int=2), 3)}),
    revoking=frozenset({(UUID(int=1), 1)}),
)


def _read_back(record: ConsumerRecord) -> ConsumerRecord:
    key, value = record.encoded()
    found = decode(record.kind, key, value)
    assert found is not None
    return found


def test_two_records_hold_all_of_it() -> None:
    """What it told, and how far it has come."""
    decoded = _read_back(MEMBER.subscription_record("g")).value
    reads = _read_back(MEMBER.current_record("g")).value
    assert isinstance(decoded, ConsumerGroupMemberMetadataValue)
    assert isinstance(reads, ConsumerGroupCurrentMemberAssignmentValue)
    assert ConsumerMember(id="m").with_metadata(decoded).reading(reads) == MEMBER


def test_it_is_reconciled_when_nothing_is_left_to_do() -> None:
    """The epoch alone does not say it."""
    assert not MEMBER.reconciled_to(5)
    assert MEMBER.starting_over().reconciled_to(0)
    assert MEMBER.held == MEMBER.assigned | MEMBER.revoking
